package httpapi

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.org/registry/readmodel"
)

// head has everything that the headers of an answer depend on.
type head struct {
	view *readmodel.View // the state that the answer is made from; nil for none
	asOf time.Time       // the last moment at which the view was known to be complete

	cache  policy
	waits  bool   // the client asked to wait, for a sequence or a change: no cache may keep the answer
	tag    string // names the content, without quotes; "" for none
	zipped bool   // the body is compressed
	media  string // "" means JSON or, for a page, HTML
	page   page
}

// policy is how caches treat an answer. The zero value is no-store.
type policy struct {
	control string // Cache-Control
	cdn     string // CDN-Cache-Control, if any
	asIs    bool   // the body is never compressed: a compressed length would tell something about the content
}

// page distinguishes pages of the site from answers of the API.
type page uint8

const (
	noPage        page = iota
	unindexedPage      // no search engine may show it
	indexedPage        // search engines may show it
)

const (
	// errorHeader has the kind of a failure, for programs.
	errorHeader = "Registry-Error"

	plainText = "text/plain; charset=utf-8"
)

func (d *head) contentType() string {
	if d.media != "" {
		return d.media
	}
	if d.page != noPage {
		return "text/html; charset=utf-8"
	}
	return "application/json; charset=utf-8"
}

// setHeaders sets the headers that a 200 and a 304 have in common.
func (d *head) setHeaders(h http.Header, path string) {
	setCommonHeaders(h, path)
	if d.page != noPage {
		maps.Copy(h, pageHeaders)
	}
	if d.page == indexedPage {
		h.Del("X-Robots-Tag") // commonHeaders have told search engines to show nothing
	}

	if d.view != nil {
		asOf := formatTime(d.asOf)
		h.Set("Registry-Sequence", strconv.FormatUint(d.view.Sequence(), 10))
		h.Set("Registry-As-Of", asOf)

		// From these headers a page's script learns the age of the data, even if a cache has sent the page.
		if d.page != noPage {
			h.Set("Last-Modified", d.asOf.UTC().Format(http.TimeFormat))
			h.Set("Server-Timing", `asof;desc="`+asOf+`"`)
		}
	}

	if d.tag != "" && d.zipped {
		h.Set("ETag", `"`+d.tag+`-gzip"`)
	} else if d.tag != "" {
		h.Set("ETag", `"`+d.tag+`"`)
	}
	d.setCacheHeaders(h)
}

// setCacheHeaders says who may keep the answer, for how long, and which request headers it depends on.
func (d *head) setCacheHeaders(h http.Header) {
	// send compresses bodies with a tag, if they are large enough. Whether this body is does not matter for Vary: a 304 has the
	// same Vary, but no body.
	var vary []string
	mayBeZipped := d.tag != "" && !d.cache.asIs
	if mayBeZipped {
		vary = append(vary, "Accept-Encoding")
	}

	// A client that asks for a sequence must not get an older answer from a cache.
	if d.view != nil && d.cache.control != "" {
		vary = append(vary, minSeqHeader)
	}
	if len(vary) > 0 {
		h.Set("Vary", strings.Join(vary, ", "))
	}

	// No cache may keep the answer to a client that asked to wait.
	mayBeCached := !d.waits && d.cache.control != ""
	if mayBeCached {
		h.Set("Cache-Control", d.cache.control)
		if d.cache.cdn != "" {
			h.Set("CDN-Cache-Control", d.cache.cdn)
		}
		return
	}

	h.Set("Cache-Control", "no-store")
	if d.cache.asIs {
		h.Set("Cache-Control", "no-store, no-transform")
	}
}

// commonHeaders are on every answer. They are the same for every Origin, since a shared cache may give one answer to pages of
// any origin. All answers share the slices of values, so no code may change a slice.
var commonHeaders = http.Header{
	"Access-Control-Allow-Origin":   {"*"},
	"Access-Control-Expose-Headers": {"Registry-Sequence, Registry-As-Of, Registry-Index-Sequence, Registry-Error, ETag, Retry-After"},
	"X-Content-Type-Options":        {"nosniff"},
	"X-Robots-Tag":                  {"noindex, nofollow"},
}

// pageHeaders are on every page. The address of a page may name a person: no other site may learn it from a link.
var pageHeaders = http.Header{
	"Content-Security-Policy": {"default-src 'none'; base-uri 'none'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; " +
		"img-src 'self'; script-src 'self'; style-src 'self'"},
	"Cross-Origin-Opener-Policy": {"same-origin"},
	"Referrer-Policy":            {"no-referrer"},
}

func setCommonHeaders(h http.Header, path string) {
	maps.Copy(h, commonHeaders)

	// Nothing in a picture may run.
	if isAvatar(path) {
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	}
}

// acceptsGzip reports whether Accept-Encoding gives gzip a weight above zero (RFC 9110, 12.5.3). The weight of * only counts if
// gzip has none of its own.
func acceptsGzip(lines []string) (accepts bool) {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			coding, weight, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip":
				return isPositive(weight)
			case "*":
				accepts = isPositive(weight)
			}
		}
	}
	return accepts
}

// isPositive reports whether a weight such as "q=0.5" is above zero. An absent weight is 1.
func isPositive(weight string) bool {
	_, number, given := strings.Cut(weight, "=")
	if !given {
		return true
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	return err == nil && q > 0
}
