package httpapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/httpapi/wire"
	"example.org/registry/readmodel"
)

// route is what the cacheable answers of one path have in common: lists and checks, as JSON and as
// pages of the site. It does not change once [Public.cacheable] has it.
type route struct {
	number uint8 // tells the query strings of routes apart
	policy *policy
	html   bool // a page of the site
	named  bool // the path's parameter id is part of the query, which then is "<id>?<query string>"
	// lines are the shared headers of answers, indexedLines those of pages that search engines may show.
	lines, indexedLines headerLines
	// parse reads a query string. It is a pure function, and its only error is a paramError.
	parse func(raw string) (query, error)
	// tag names the content that an answer is made of. Nil: there is none, and the answer is 404.
	tag func(at state, q *query) *tagSet
	// build appends the body. Its only errors are errBusy and that of ctx.
	build func(ctx context.Context, at state, q *query, dst []byte) ([]byte, error)
}

// policy is the caching headers of an answer. A nil cdn leaves that one out.
type policy struct{ cache, cdn []string }

// query is a query string as the route understands it.
type query struct {
	list    readmodel.ListQuery
	check   readmodel.CheckQuery
	entry   string      // the entry id that the path names
	person  paste.Paste // of the person check
	part    int         // of a reason that is too long for one page of the site, from 1
	indexed bool        // search engines may show the page
}

// answer is one cacheable answer in the making.
type answer struct {
	route *route // for good
	key   bodyKey
	query *query // may be shared with other requests: nobody changes it
	at    state
	tags  *tagSet
}

// cacheable returns the handler of a route. A query string that was asked before is not parsed again. A
// bad one is refused even while no answer is possible.
func (p *Public) cacheable(r *route) handler {
	p.routeCount++
	r.number = p.routeCount
	return func(c *gin.Context) error {
		a := answer{route: r, key: bodyKey{r.number, c.Request.URL.RawQuery}}
		if r.named {
			id := c.Param("id")
			if !events.IsID(id) {
				return errNotFound
			}
			a.key.raw = id + "?" + a.key.raw
		}
		saved := p.bodies.find(a.key)
		if err := a.parse(saved); err != nil {
			return err
		}
		var err error
		if a.at, err = p.gate.admit(c.Request); err != nil {
			return err
		}
		if r.html {
			a.at.staleSince = staleSince(time.UnixMilli(a.at.headers.asOf))
			a.at.month = readmodel.MonthOf(time.Now())
		}
		if a.tags = r.tag(a.at, a.query); a.tags == nil {
			return errNotFound
		}
		return p.send(c, &a, saved)
	}
}

// parse reads the query string, unless saved has its query.
func (a *answer) parse(saved *savedBody) error {
	if saved != nil {
		a.key, a.query = saved.key, saved.query
		return nil
	}
	a.key.raw = strings.Clone(a.key.raw) // the cache may keep it, and must not keep the request
	q, err := a.route.parse(a.key.raw)
	a.query = &q
	return err
}

// send answers with a body, or with 304 where the reader holds it. saved is what the cache has for the
// query string, of whatever content, or nil.
func (p *Public) send(c *gin.Context, a *answer, saved *savedBody) error {
	e := negotiate(c.Request.Header["Accept-Encoding"])
	held := a.tags.held(c.Request.Header["If-None-Match"])
	if held.settles(e) {
		p.notModified(c, a, e)
		return nil
	}
	again := saved.matches(a.tags)
	if again {
		if plain := saved.variants[identity].Load(); plain != nil {
			return p.sendSaved(c, a, e.worth(plain.body), held, saved)
		}
	}
	buf := p.buffers.get()
	body, err := a.route.build(c.Request.Context(), a.at, a.query, (*buf)[:0])
	if err != nil {
		p.buffers.put(buf, *buf)
		return err
	}
	defer p.buffers.put(buf, body)
	p.bodies.save(a, body, again)
	return p.sendBuilt(c, a, e.worth(body), held, body)
}

func (p *Public) sendSaved(c *gin.Context, a *answer, e encoding, held held, saved *savedBody) error {
	if held.any {
		p.notModified(c, a, e)
		return nil
	}
	v, err := saved.in(e, p.compressor)
	if err != nil {
		return err
	}
	p.write(c, a, e, v)
	return nil
}

func (p *Public) sendBuilt(c *gin.Context, a *answer, e encoding, held held, body []byte) error {
	if held.any {
		p.notModified(c, a, e)
		return nil
	}
	if e == identity {
		p.write(c, a, e, newVariant(body))
		return nil
	}
	buf := p.buffers.get()
	encoded, err := p.compressor.appendEncoded((*buf)[:0], body, e)
	if err != nil {
		return err
	}
	p.write(c, a, e, newVariant(encoded))
	p.buffers.put(buf, encoded)
	return nil
}

func (p *Public) write(c *gin.Context, a *answer, e encoding, v *variant) {
	p.answerHeaders(c, a, e)
	h := c.Writer.Header()
	h["Content-Type"] = p.fixed.json
	if a.route.html {
		h["Content-Type"] = p.fixed.html
	}
	h["Content-Length"] = v.length
	if e != identity {
		h["Content-Encoding"] = p.fixed.encodings[e]
	}
	wire.ConnOf(c.Request).JoinWrites(len(v.body))
	_, _ = c.Writer.Write(v.body) // fails only when the reader has gone
}

// notModified writes what write does, without the body and the headers that describe it.
func (p *Public) notModified(c *gin.Context, a *answer, e encoding) {
	p.answerHeaders(c, a, e)
	c.Writer.WriteHeader(http.StatusNotModified)
	c.Writer.WriteHeaderNow()
}

// maxPooled is the size in bytes of the largest buffer that is kept for the next answer.
const maxPooled = 1 << 20

// buffers is a pool of buffers to build bodies in. Any goroutine may use it.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	return new(make([]byte, 0, 16<<10))
}

// put takes back the buffer of get, which has grown into used. Nobody may need its bytes any more.
func (b *buffers) put(p *[]byte, used []byte) {
	if cap(used) <= maxPooled {
		*p = used[:0]
		b.pool.Put(p)
	}
}
