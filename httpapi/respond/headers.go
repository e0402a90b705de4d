package respond

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// setHeaders sets the headers that a 200 and a 304 have in common.
func (s *Sender) setHeaders(c *gin.Context, r *Response, e encoding) {
	h := c.Writer.Header()
	if r.Tags != nil {
		h["Etag"] = r.Tags.header[e]
	}
	s.sharedHeaders(h, r)
	if s.sandboxed(c.Request.URL.Path) {
		h["Content-Security-Policy"] = s.fixed.sandbox
	}
	for i := 0; i < len(r.More); i += 2 {
		h[r.More[i]] = r.More[i+1 : i+2 : i+2]
	}
}

// sharedHeaders sets the headers that do not depend on the request, given the response. It ignores
// Origin: a shared cache may serve a response to any client (httpapi/CONTRACT.md#cors). Vary does
// not depend on the body's size, because a 304 is sent without knowing it, and an address may be
// small today and large tomorrow.
func (s *Sender) sharedHeaders(h http.Header, r *Response) {
	f := &s.fixed
	h["Access-Control-Allow-Origin"] = f.anyOrigin
	h["Access-Control-Expose-Headers"] = f.exposed
	h["X-Content-Type-Options"] = f.nosniff
	if r.Page != IndexedPage { // search engines must not find accusations
		h["X-Robots-Tag"] = f.robots
	}
	if r.Page != NoPage {
		h["Content-Security-Policy"] = f.policy
		h["Referrer-Policy"] = f.referrer
		h["Cross-Origin-Opener-Policy"] = f.opener
	}
	if at := r.At; at != nil {
		h["Registry-Sequence"] = at.Sequence
		h["Registry-As-Of"] = at.AsOf
		if r.Page != NoPage { // tells a visitor how old the data of a cached page is; see site.js
			h["Last-Modified"] = []string{at.Time.UTC().Format(http.TimeFormat)}
			h["Server-Timing"] = []string{`asof;desc="` + at.AsOf[0] + `"`}
		}
	}
	switch {
	case r.Tags != nil && r.Cache.AsIs:
		h["Vary"] = f.varySequence
	case r.Tags != nil && r.At != nil:
		h["Vary"] = f.varyState
	case r.Tags != nil:
		h["Vary"] = f.varyEncoding
	case r.Cache != nil && r.At != nil:
		h["Vary"] = f.varySequence
	}
	if r.Cache == nil || r.NoStore {
		h["Cache-Control"] = f.noStore
		if r.Cache != nil && r.Cache.AsIs {
			h["Cache-Control"] = f.noStoreAsIs
		}
		return
	}
	h["Cache-Control"] = r.Cache.Control
	if r.Cache.CDN != nil {
		h["Cdn-Cache-Control"] = r.Cache.CDN
	}
}

// fixed holds header values that never change. All responses share them, so the slices must not be
// modified.
type fixed struct {
	anyOrigin, exposed, nosniff, robots          []string
	json, html, noStore, varyState, varyEncoding []string
	varySequence, noStoreAsIs                    []string
	policy, referrer, opener, sandbox            []string // policy to opener: of pages
	encodings                                    [numEncodings][]string
}

// newFixed returns the values.
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
		referrer:  []string{"no-referrer"}, // addresses of pages identify persons
		opener:    []string{"same-origin"},
		sandbox:   []string{"default-src 'none'; sandbox"}, // nothing may run in a picture (httpapi/CONTRACT.md#avatars)
		encodings: [...][]string{nil, {"gzip"}},
	}
}

// Stamp has the headers that identify the state of the registry of a response. Many responses share
// one: its values never change.
type Stamp struct {
	Sequence []string  // Registry-Sequence
	AsOf     []string  // Registry-As-Of
	Time     time.Time // of AsOf, in whole milliseconds
}
