package httpapi

import (
	"bytes"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/wire"
	"example.org/registry/readmodel"
)

// answerHeaders sets the headers that a 200 and a 304 have in common. Those that all answers of a route share
// at one state are spliced in preformatted, where the connection allows it.
func (p *Public) answerHeaders(c *gin.Context, a *answer, e encoding) {
	h := c.Writer.Header()
	h["Etag"] = a.tags.header[e]
	if conn := wire.ConnOf(c.Request); conn != nil && !a.at.noStore {
		lines := &a.route.lines
		if a.query.indexed {
			lines = &a.route.indexedLines
		}
		conn.InsertHeader(lines.at(a.at.headers, func(h http.Header) { p.sharedHeaders(h, a) }))
		return
	}
	p.sharedHeaders(h, a)
}

// sharedHeaders sets the headers that depend on route and state, and of the query on query.indexed alone. Vary does not
// depend on the body's size: a 304 is sent without knowing it, and one address may be small today and large
// tomorrow.
func (p *Public) sharedHeaders(h http.Header, a *answer) {
	p.fixed.common(h)
	h["Vary"] = p.fixed.vary
	a.at.headers.set(h)
	if a.route.html {
		p.fixed.pageHeaders(h, a.query.indexed)
		// A page from a cache tells its reader by this how old its data is; see site.js.
		h["Last-Modified"] = []string{time.UnixMilli(a.at.headers.asOf).UTC().Format(http.TimeFormat)}
	}
	if a.at.noStore {
		h["Cache-Control"] = p.fixed.noStore
		return
	}
	h["Cache-Control"] = a.route.policy.cache
	if a.route.policy.cdn != nil {
		h["Cdn-Cache-Control"] = a.route.policy.cdn
	}
}

// fixed holds header values that never change. All answers share them: nobody may change an element
// of a slice.
type fixed struct {
	anyOrigin, exposed, nosniff, robots []string
	json, noStore, vary                 []string
	encodings                           [numEncodings][]string
	siteFixed
}

func newFixed() fixed {
	return fixed{
		anyOrigin: []string{"*"},
		exposed:   []string{"Registry-Sequence, Registry-As-Of, Registry-Index-Sequence, ETag, Retry-After"},
		nosniff:   []string{"nosniff"},
		robots:    []string{"noindex, nofollow"},
		json:      []string{"application/json; charset=utf-8"},
		noStore:   []string{"no-store"},
		vary:      []string{"Accept-Encoding, Registry-Min-Sequence"},
		encodings: [...][]string{nil, {"gzip"}, {"zstd"}},
		siteFixed: newSiteFixed(),
	}
}

// common sets the headers of every answer (httpapi/CONTRACT.md#cors). It does not look at Origin: a shared cache
// may give any answer to anybody.
func (f *fixed) common(h http.Header) {
	h["Access-Control-Allow-Origin"] = f.anyOrigin
	h["Access-Control-Expose-Headers"] = f.exposed
	h["X-Content-Type-Options"] = f.nosniff
	h["X-Robots-Tag"] = f.robots
}

// stateHeaders holds header values that depend on the state alone. Many answers share them: nobody may change
// an element of a slice.
type stateHeaders struct {
	key      stateKey
	asOf     int64    // milliseconds since 1970
	sequence []string // Registry-Sequence
	asOfText []string // Registry-As-Of
	tags     *viewTags
}

// stateKey identifies the view that the values are of: entity tags are a function of the content, and so is
// its digest. The view itself would be kept in memory by its headers.
type stateKey struct {
	sequence uint64
	digest   readmodel.Digest
}

// set says which state an answer was computed at.
func (s *stateHeaders) set(h http.Header) {
	h["Registry-Sequence"] = s.sequence
	h["Registry-As-Of"] = s.asOfText
}

// viewTags are the entity tags of one view (httpapi/CONTRACT.md#caching).
type viewTags struct {
	lists [events.NumLists][2]tagSet // by list, then whether the order depends on view totals
	check tagSet
}

func newViewTags(view *readmodel.View) *viewTags {
	t := &viewTags{check: newTagSet(view.CheckTag())}
	for i, l := range events.Lists() {
		t.lists[i][0] = newTagSet(view.ListTag(l, readmodel.Newest))
		t.lists[i][1] = newTagSet(view.ListTag(l, readmodel.Popular))
	}
	return t
}

// list returns the tag of a list in an order.
func (t *viewTags) list(l events.List, s readmodel.Sort) *tagSet {
	i, _ := l.Index() // routes are made of events.Lists
	if s.ByViews() {
		return &t.lists[i][1]
	}
	return &t.lists[i][0]
}

// stateHeaderCache remembers the headers of the newest state. Just after a change a few answers are
// at an older one; they build theirs anew, which takes microseconds. Any goroutine may use it.
type stateHeaderCache struct{ last atomic.Pointer[stateHeaders] }

func (c *stateHeaderCache) of(view *readmodel.View, asOf time.Time) *stateHeaders {
	key, ms := stateKey{view.Sequence(), view.Digest()}, asOf.UnixMilli()
	last := c.last.Load()
	if last != nil && last.key == key && last.asOf == ms {
		return last
	}
	next := &stateHeaders{key: key, asOf: ms, asOfText: []string{stamp(asOf)}}
	if last != nil && last.key == key {
		next.sequence, next.tags = last.sequence, last.tags
	} else {
		next.sequence = []string{strconv.FormatUint(key.sequence, 10)}
		next.tags = newViewTags(view)
	}
	c.last.Store(next)
	return next
}

// headerLines remembers a route's shared headers at the newest state, formatted. Any goroutine may use it.
type headerLines struct{ last atomic.Pointer[linesAt] }

type linesAt struct {
	state *stateHeaders
	text  []byte
}

// at returns the lines of what set sets, which the caller must not change.
func (l *headerLines) at(state *stateHeaders, set func(http.Header)) []byte {
	if last := l.last.Load(); last != nil && last.state == state {
		return last.text
	}
	h := http.Header{}
	set(h)
	var text bytes.Buffer
	_ = h.Write(&text) // a buffer takes everything
	l.last.Store(&linesAt{state, text.Bytes()})
	return text.Bytes()
}
