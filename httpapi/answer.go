package httpapi

import (
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
)

// maxPooled is the largest buffer kept for the next answer, in bytes.
const maxPooled = 1 << 20

// buffers is a pool of bodies under construction.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	return new(make([]byte, 0, 16<<10))
}

// put takes back a buffer whose bytes nobody needs any more.
func (b *buffers) put(p *[]byte, used []byte) {
	if cap(used) <= maxPooled {
		*p = used[:0]
		b.pool.Put(p)
	}
}

// content is one cacheable answer in the making.
type content struct {
	*form
	*question
	key  pageKey
	at   position
	tags *tagSet
}

// policy is the caching headers of an answer. CDN is nil where there is none.
type policy struct{ cache, cdn []string }

// send answers with the content, or with 304 where the reader holds it. saved is what is remembered of
// the question, of whatever content; nil: nothing.
func (p *Public) send(c *gin.Context, a *content, saved *savedPage) error {
	e := negotiate(c.Request.Header["Accept-Encoding"])
	held := a.tags.held(c.Request.Header["If-None-Match"])
	if held.settles(e) {
		p.notModified(c, a, e)
		return nil
	}
	again, whole := saved.of(a.tags)
	if whole {
		return p.sendSaved(c, a, e, held, saved)
	}
	buf := p.bodies.get()
	body, err := a.build(c.Request.Context(), a.at, a.question, (*buf)[:0])
	if err != nil {
		p.bodies.put(buf, *buf)
		return err
	}
	defer p.bodies.put(buf, body)
	p.pages.save(a, body, again)
	if len(body) < minEncoded {
		e = identity
	}
	if held.any {
		p.notModified(c, a, e)
		return nil
	}
	return p.write(c, a, e, body)
}

// sendSaved is the rest of send where the body is remembered.
func (p *Public) sendSaved(c *gin.Context, a *content, e encoding, held held, saved *savedPage) error {
	if len(saved.variants[identity].Load().body) < minEncoded {
		e = identity
	}
	if held.any {
		p.notModified(c, a, e)
		return nil
	}
	v, err := saved.in(e, p.compressor)
	if err != nil {
		return err
	}
	p.writeBody(c, a, e, v)
	return nil
}

func (p *Public) write(c *gin.Context, a *content, e encoding, body []byte) error {
	if e == identity {
		p.writeBody(c, a, e, newVariant(body))
		return nil
	}
	buf := p.bodies.get()
	encoded, err := p.compressor.appendEncoded((*buf)[:0], body, e)
	if err != nil {
		return err
	}
	p.writeBody(c, a, e, newVariant(encoded))
	p.bodies.put(buf, encoded)
	return nil
}

func (p *Public) writeBody(c *gin.Context, a *content, e encoding, v *variant) {
	h := c.Writer.Header()
	p.contentHeaders(c, a, e)
	h["Content-Type"] = p.fixed.json
	if a.page {
		h["Content-Type"] = p.fixed.html
	}
	h["Content-Length"] = v.length
	if e != identity {
		h["Content-Encoding"] = p.fixed.encodings[e]
	}
	joinWrites(c.Request, len(v.body))
	_, _ = c.Writer.Write(v.body) // fails only when the reader has gone
}

// notModified is what writeBody writes, without the body and what describes it.
func (p *Public) notModified(c *gin.Context, a *content, e encoding) {
	p.contentHeaders(c, a, e)
	c.Writer.WriteHeader(http.StatusNotModified)
	c.Writer.WriteHeaderNow()
}
