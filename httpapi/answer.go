package httpapi

import (
	"net/http"
	"sync"
	"time"

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
	p.contentHeaders(h, a, e)
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
	p.contentHeaders(c.Writer.Header(), a, e)
	c.Writer.WriteHeader(http.StatusNotModified)
	c.Writer.WriteHeaderNow()
}

// contentHeaders sets what a 200 and a 304 have in common. Vary is the same whatever the body's
// size: a 304 is sent without knowing it, and one address may be small today, large tomorrow.
func (p *Public) contentHeaders(h http.Header, a *content, e encoding) {
	p.fixed.common(h)
	h["Etag"] = a.tags.header[e]
	h["Vary"] = p.fixed.vary
	p.positionHeaders(h, a.at)
	if a.page {
		p.fixed.pageHeaders(h, a.index)
		// A page from a cache tells its reader by this how old its data is; see site.js.
		h["Last-Modified"] = []string{time.UnixMilli(a.at.heads.asOf).UTC().Format(http.TimeFormat)}
	}
	if a.at.fresh {
		h["Cache-Control"] = p.fixed.noStore
		return
	}
	h["Cache-Control"] = a.policy.cache
	if a.policy.cdn != nil {
		h["Cdn-Cache-Control"] = a.policy.cdn
	}
}

// positionHeaders says which state an answer was computed at.
func (p *Public) positionHeaders(h http.Header, at position) {
	h["Registry-Sequence"] = at.heads.sequence
	h["Registry-As-Of"] = at.heads.asOfText
}

// fixed holds header values that never change, ready to be put into an answer's header. They are
// shared by all answers: nobody may change an element of a slice.
type fixed struct {
	anyOrigin, exposed, nosniff, robots []string
	json, noStore, vary                 []string
	encodings                           [numEncodings][]string
	siteFixed
}

func newFixed() fixed {
	return fixed{
		anyOrigin: []string{"*"},
		exposed:   []string{"Registry-Sequence, Registry-As-Of, ETag, Retry-After"},
		nosniff:   []string{"nosniff"},
		robots:    []string{"noindex, nofollow"},
		json:      []string{"application/json; charset=utf-8"},
		noStore:   []string{"no-store"},
		vary:      []string{"Accept-Encoding, Registry-Min-Sequence"},
		encodings: [...][]string{nil, {"gzip"}, {"zstd"}},
		siteFixed: newSiteFixed(),
	}
}

// common sets the headers of every answer (API contract, CORS and headers). CORS does not look
// at Origin: a shared cache may give any answer to anybody.
func (f *fixed) common(h http.Header) {
	h["Access-Control-Allow-Origin"] = f.anyOrigin
	h["Access-Control-Expose-Headers"] = f.exposed
	h["X-Content-Type-Options"] = f.nosniff
	h["X-Robots-Tag"] = f.robots
}
