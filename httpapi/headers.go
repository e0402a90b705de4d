package httpapi

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/wire"
	"example.org/registry/readmodel"
)

// setHeaders sets the headers that a 200 and a 304 have in common. Those that many answers share
// are spliced in preformatted, where the connection allows it.
func (p *Public) setHeaders(c *gin.Context, a *answer, e encoding) {
	h := c.Writer.Header()
	if a.tags != nil {
		h["Etag"] = a.tags.header[e]
	}
	conn := wire.ConnOf(c.Request)
	if a.lines != nil && conn != nil && !a.at.noStore {
		conn.InsertHeader(a.lines.at(a.at.headers, func(h http.Header) { p.sharedHeaders(h, a) }))
	} else {
		p.sharedHeaders(h, a)
	}
	if user, ok := strings.CutPrefix(c.Request.URL.Path, avatars); ok && user != "" && !strings.Contains(user, "/") {
		h["Content-Security-Policy"] = p.fixed.sandbox
	}
	for i := 0; i < len(a.more); i += 2 {
		h[a.more[i]] = a.more[i+1 : i+2 : i+2]
	}
}

// sharedHeaders sets the headers that no other request for the same answer changes. It does not
// look at Origin: a shared cache may give any answer to anybody (httpapi/CONTRACT.md#cors). Vary
// does not depend on the body's size: a 304 is sent without knowing it, and one address may be
// small today and large tomorrow.
func (p *Public) sharedHeaders(h http.Header, a *answer) {
	f := &p.fixed
	h["Access-Control-Allow-Origin"] = f.anyOrigin
	h["Access-Control-Expose-Headers"] = f.exposed
	h["X-Content-Type-Options"] = f.nosniff
	if a.page != indexedPage { // no accusation of anybody may be found by a search engine
		h["X-Robots-Tag"] = f.robots
	}
	if a.page != noPage {
		h["Content-Security-Policy"] = f.policy
		h["Referrer-Policy"] = f.referrer
		h["Cross-Origin-Opener-Policy"] = f.opener
	}
	if at := a.at.headers; at != nil {
		h["Registry-Sequence"] = at.sequence
		h["Registry-As-Of"] = at.asOfText
		if a.page != noPage { // a page from a cache tells its reader by this how old its data is; see site.js
			h["Last-Modified"] = []string{time.UnixMilli(at.asOf).UTC().Format(http.TimeFormat)}
		}
	}
	switch {
	case a.tags != nil && a.cache.asIs:
		h["Vary"] = f.varySequence
	case a.tags != nil && a.at.headers != nil:
		h["Vary"] = f.varyState
	case a.tags != nil:
		h["Vary"] = f.varyEncoding
	case a.cache != nil && a.at.headers != nil:
		h["Vary"] = f.varySequence
	}
	if a.cache == nil || a.at.noStore {
		h["Cache-Control"] = f.noStore
		if a.cache != nil && a.cache.asIs {
			h["Cache-Control"] = f.noStoreAsIs
		}
		return
	}
	h["Cache-Control"] = a.cache.cache
	if a.cache.cdn != nil {
		h["Cdn-Cache-Control"] = a.cache.cdn
	}
}

// fixed holds header values that never change. All answers share them: nobody may change an element
// of a slice.
type fixed struct {
	anyOrigin, exposed, nosniff, robots          []string
	json, html, noStore, varyState, varyEncoding []string
	varySequence, noStoreAsIs                    []string
	policy, referrer, opener, sandbox            []string // policy to opener: of pages
	encodings                                    [numEncodings][]string
}

func newFixed() fixed {
	return fixed{
		anyOrigin:    []string{"*"},
		exposed:      []string{"Registry-Sequence, Registry-As-Of, Registry-Index-Sequence, Registry-Error, ETag, Retry-After"},
		nosniff:      []string{"nosniff"},
		robots:       []string{"noindex, nofollow"},
		json:         []string{"application/json; charset=utf-8"},
		html:         []string{"text/html; charset=utf-8"},
		noStore:      []string{"no-store"},
		varyState:    []string{"Accept-Encoding, Registry-Min-Sequence"},
		varyEncoding: []string{"Accept-Encoding"},
		varySequence: []string{"Registry-Min-Sequence"},
		noStoreAsIs:  []string{"no-store, no-transform"},
		policy: []string{"default-src 'none'; base-uri 'none'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; " +
			"img-src 'self'; script-src 'self'; style-src 'self'"},
		referrer:  []string{"no-referrer"}, // addresses of pages name persons
		opener:    []string{"same-origin"},
		sandbox:   []string{"default-src 'none'; sandbox"}, // nothing may run in a picture (httpapi/CONTRACT.md#avatars)
		encodings: [...][]string{nil, {"gzip"}, {"zstd"}},
	}
}

// stateHeaders holds header values that depend on the state alone. Many answers share them: nobody
// may change an element of a slice.
type stateHeaders struct {
	key      stateKey
	asOf     int64    // milliseconds since 1970
	sequence []string // Registry-Sequence
	asOfText []string // Registry-As-Of
	tags     *viewTags
}

// stateKey identifies the view that the values are of: entity tags are a function of the content,
// and so is its digest. The view itself would be kept in memory by its headers.
type stateKey struct {
	epoch    string
	sequence uint64
	digest   readmodel.Digest
}

// viewTags are the entity tags of one view (httpapi/CONTRACT.md#caching).
type viewTags struct {
	lists   [events.NumLists]tagSet // of answers that do not depend on view totals
	byViews [events.NumLists]tagSet // of those that do
	check   tagSet
	feed    tagSet
}

func newViewTags(view *readmodel.View) *viewTags {
	t := &viewTags{check: newTagSet(view.CheckTag()), feed: newTagSet(view.FeedTag())}
	for i, l := range events.Lists() {
		t.lists[i] = newTagSet(view.ListTag(&readmodel.ListQuery{List: l}))
		t.byViews[i] = newTagSet(view.ListTag(&readmodel.ListQuery{List: l, Sort: readmodel.Popular}))
	}
	return t
}

// list returns the tag of the answer to q: View.ListTag, formatted.
func (t *viewTags) list(q *readmodel.ListQuery) *tagSet {
	i, _ := q.List.Index() // routes are made of events.Lists
	if q.ByViews() {
		return &t.byViews[i]
	}
	return &t.lists[i]
}

// stateHeaderCache remembers the headers of the newest state. Just after a change a few answers are
// at an older one; they build theirs anew, which takes microseconds. Any goroutine may use it.
type stateHeaderCache struct{ last atomic.Pointer[stateHeaders] }

func (c *stateHeaderCache) of(view *readmodel.View, asOf time.Time) *stateHeaders {
	key, ms := stateKey{view.Epoch(), view.Sequence(), view.Digest()}, asOf.UnixMilli()
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

// headerLines remembers a route's shared headers at the newest state, formatted. Any goroutine may
// use it.
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
