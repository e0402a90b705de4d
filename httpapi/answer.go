package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/httpapi/wire"
	"example.org/registry/readmodel"
)

// answer is what a handler wants sent. send makes the head of it, so a handler sets no header. The
// zero value is a 200 without a body that no cache may keep.
type answer struct {
	status  int      // zero: 200
	media   []string // Content-Type; nil: that of JSON or, of a page, HTML
	page    pageKind
	cache   *policy  // nil: no cache may keep it
	at      state    // the state it was computed from; zero: none
	tags    *tagSet  // nil: it has no tag, and is never 304 or encoded
	more    []string // headers of this answer alone: names as net/http spells them, each before its value
	content *content // nil: build makes it or, without build, the body is empty
	// build appends the body, and is not called for a 304 that needs no body.
	build func(dst []byte) ([]byte, error)
	// lines keep the headers of answers that differ from this one in status, more, tags and body
	// alone. Nil: none do.
	lines *headerLines
	// finish writes what follows the headers, in place of status and body. Nil: send does.
	finish gin.HandlerFunc
}

// pageKind tells pages of the site from answers of the API.
type pageKind uint8

const (
	noPage      pageKind = iota
	hiddenPage           // no search engine may show it
	indexedPage          // search engines may show it
	numPageKinds
)

// policy is the caching headers of an answer. A nil cdn leaves that one out.
type policy struct {
	cache, cdn []string
	asIs       bool // the answer is never encoded, by no cache either: its length must not tell what is in it
}

func cached(cacheControl string) *policy { return &policy{cache: []string{cacheControl}} }

// asJSON returns an answer with v as its body.
func asJSON(v any) (answer, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return answer{}, fmt.Errorf("encode the answer: %w", err)
	}
	return answer{content: newContent(body)}, nil
}

// redirect returns an answer that leads elsewhere.
func redirect(status int, location string) answer {
	return answer{status: status, cache: cached("public, max-age=300"), more: []string{"Location", location}}
}

// send answers with the body, or with 304 where the reader holds it.
func (p *Public) send(c *gin.Context, a *answer) error {
	e, held := identity, held{}
	if a.tags != nil {
		if !a.cache.asIs {
			e = negotiate(c.Request.Header["Accept-Encoding"])
		}
		held = a.tags.held(c.Request.Header["If-None-Match"])
	}
	if a.build != nil && !held.settles(e) {
		buf := p.buffers.get()
		body, err := a.build((*buf)[:0])
		if err != nil {
			p.buffers.put(buf, *buf)
			return err
		}
		defer p.buffers.put(buf, body)
		a.content = newContent(body)
	}
	if a.content != nil {
		e = e.worth(a.content.plain())
	}
	if held.any {
		p.setHeaders(c, a, e)
		c.Writer.WriteHeader(http.StatusNotModified)
		c.Writer.WriteHeaderNow()
		return nil
	}
	v, err := a.content.in(e, p.compressor)
	if err != nil {
		return err
	}
	p.setHeaders(c, a, e)
	if a.finish != nil {
		a.finish(c)
		return nil
	}
	p.write(c, a, e, v)
	return nil
}

func (p *Public) write(c *gin.Context, a *answer, e encoding, v *variant) {
	h := c.Writer.Header()
	h["Content-Length"] = v.length
	if e != identity {
		h["Content-Encoding"] = p.fixed.encodings[e]
	}
	switch {
	case a.content == nil:
	case a.media != nil:
		h["Content-Type"] = a.media
	case a.page != noPage:
		h["Content-Type"] = p.fixed.html
	default:
		h["Content-Type"] = p.fixed.json
	}
	if a.status != 0 {
		c.Writer.WriteHeader(a.status)
	}
	wire.ConnOf(c.Request).JoinWrites(len(v.body))
	c.Writer.WriteHeaderNow()
	_, _ = c.Writer.Write(v.body) // fails only when the reader has gone
}

// route is what the cacheable answers of one path have in common: lists and checks, as JSON and as
// pages of the site. It does not change once [Public.cacheable] has it.
type route struct {
	number uint8 // tells the query strings of routes apart
	policy *policy
	html   bool     // a page of the site
	media  []string // nil: that of JSON or, of a page, HTML
	// name checks and returns the part of the path that belongs to the query, which then is
	// "<name>?<query string>". Nil: none does.
	name  func(c *gin.Context) (string, error)
	lines [numPageKinds]headerLines
	// parse reads a query string. It is a pure function, and its only error is a paramError.
	parse func(raw string) (query, error)
	// admit returns the state to answer from. Nil: gate.admit does.
	admit func(c *gin.Context, q *query) (state, error)
	// tag names the content that an answer is made of. Nil: there is none, and the answer is 404.
	tag func(at state, q *query) *tagSet
	// build appends the body. Its only errors are errBusy and that of ctx.
	build func(ctx context.Context, at state, q *query, dst []byte) ([]byte, error)
}

// query is a query string as the route understands it.
type query struct {
	list    readmodel.ListQuery
	check   readmodel.CheckQuery
	batch   []batchID
	bucket  int       // of chat ids, from 0
	feed    feedQuery // of changes
	entry   string    // the entry id that the path names
	person  person    // of the person check
	indexed bool      // search engines may show the page
}

// pageKind returns what the answer to q is.
func (r *route) pageKind(q *query) pageKind {
	switch {
	case !r.html:
		return noPage
	case q.indexed:
		return indexedPage
	}
	return hiddenPage
}

// cacheable returns the handler of a route. A query string that was asked before is not parsed
// again. A bad one is refused even while no answer is possible.
func (p *Public) cacheable(r *route) handler {
	p.routeCount++
	r.number = p.routeCount
	return func(c *gin.Context) (answer, error) {
		key := bodyKey{r.number, c.Request.URL.RawQuery}
		if r.name != nil {
			name, err := r.name(c)
			if err != nil {
				return answer{}, err
			}
			key.raw = name + "?" + key.raw
		}
		saved, err := p.bodies.find(key, r.parse)
		if err != nil {
			return answer{}, err
		}
		at, err := p.admit(c, r, saved.query)
		if err != nil {
			return answer{}, err
		}
		if r.admit != nil { // others may have been answered meanwhile
			if saved, err = p.bodies.find(key, r.parse); err != nil {
				return answer{}, err
			}
		}
		if r.html {
			at.staleSince = staleSince(time.UnixMilli(at.headers.asOf))
			at.month = readmodel.MonthOf(time.Now())
		}
		tags := r.tag(at, saved.query)
		if tags == nil {
			return answer{}, errNotFound
		}
		kind := r.pageKind(saved.query)
		a := answer{page: kind, media: r.media, cache: r.policy, at: at, tags: tags, lines: &r.lines[kind]}
		if a.content = saved.of(tags); a.content == nil {
			a.build = p.builder(c.Request.Context(), r, at, tags, saved)
		}
		return a, nil
	}
}

func (p *Public) admit(c *gin.Context, r *route, q *query) (state, error) {
	if r.admit != nil {
		return r.admit(c, q)
	}
	return p.gate.admit(c.Request)
}

// builder returns what makes the body of an answer and remembers it.
func (p *Public) builder(ctx context.Context, r *route, at state, tags *tagSet, saved *savedBody) func([]byte) ([]byte, error) {
	return func(dst []byte) ([]byte, error) {
		body, err := r.build(ctx, at, saved.query, dst)
		if err == nil {
			p.bodies.save(saved, tags, body)
		}
		return body, err
	}
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
