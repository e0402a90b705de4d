package httpapi

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
)

// contentHeaders sets what a 200 and a 304 have in common, just before either is written. What all
// answers of a form at a state share is put into the head as text where the connection takes it.
func (p *Public) contentHeaders(c *gin.Context, a *content, e encoding) {
	h := c.Writer.Header()
	h["Etag"] = a.tags.header[e]
	if conn := connOf(c.Request); conn != nil && !a.page && !a.at.fresh {
		conn.insert(a.lines.of(a.at.heads, func(h http.Header) { p.sharedHeaders(h, a) }))
		return
	}
	p.sharedHeaders(h, a)
}

// sharedHeaders sets the headers that do not depend on the question. Vary is the same whatever the
// body's size: a 304 is sent without knowing it, and one address may be small today, large tomorrow.
func (p *Public) sharedHeaders(h http.Header, a *content) {
	p.fixed.common(h)
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

// headerLines remembers headers at the newest state as the text of their lines. Any goroutine may
// use it.
type headerLines struct{ last atomic.Pointer[linesAt] }

type linesAt struct {
	heads *heads
	text  []byte
}

// of is the text of what set sets at the state of heads; not to be changed.
func (l *headerLines) of(heads *heads, set func(http.Header)) []byte {
	if last := l.last.Load(); last != nil && last.heads == heads {
		return last.text
	}
	h := http.Header{}
	set(h)
	var text bytes.Buffer
	_ = h.Write(&text) // a buffer takes everything
	l.last.Store(&linesAt{heads, text.Bytes()})
	return text.Bytes()
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
