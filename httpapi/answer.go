package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzip"
	"github.com/maypok86/otter/v2"

	"example.org/registry/readmodel"
)

// handler answers a request: it returns nil once it has sent the answer, else the failure to be sent.
type handler func(x *exchange) error

// exchange is one request and its answer. A handler reads from top to bottom: it parses the parameters, loads the view
// (loadView), answers at once where the content is known (sendKnown), waits for its turn (takeTurn), takes memory
// (takeMemory), makes the body and sends it (send). One goroutine uses it.
type exchange struct {
	*Public
	c     *gin.Context
	began time.Time

	// The state that is answered from; see loadView.
	view       *readmodel.View // nil before
	asOf       time.Time       // the last moment at which the view was known to be complete
	atSequence bool            // the client asked for a sequence

	// What the headers say of the content.
	policy  policy
	noStore bool   // regardless of policy
	tag     string // names the content, without quotes; "" for none
	gzip    bool   // the body may be compressed, and the client accepts it
	keep    bool   // the tag was known before the body, so the next request for it finds the body
	media   string // "" means JSON or, for a page, HTML
	page    page

	memory int // bytes that the answer has taken
}

// policy is how caches treat an answer. The zero value is no-store.
type policy struct {
	control string // Cache-Control
	cdn     string // CDN-Cache-Control, if any
	asIs    bool   // never compressed, so that its length tells nothing
}

// page distinguishes pages of the site from answers of the API.
type page uint8

const (
	noPage      page = iota
	hiddenPage       // no search engine may show it
	indexedPage      // search engines may show it
)

// serve makes gin call h, unless the client is over its limit.
func (p *Public) serve(limit *rateLimit, h handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		x := &exchange{Public: p, c: c, began: time.Now()}
		defer x.releaseMemory()

		err := limit.allow(c)
		if err == nil {
			err = h(x)
		}
		if err != nil {
			x.fail(err)
		}
	}
}

// query returns the query string as sent.
func (x *exchange) query() string { return x.c.Request.URL.RawQuery }

// ctx returns the context of work that is not given up where a client closes its side of the connection: it may wait for the
// answer.
func (x *exchange) ctx() context.Context { return context.WithoutCancel(x.c.Request.Context()) }

// bodyKey names a kept body. Another spelling of the same query is another key.
type bodyKey struct {
	path, query string
	gzip        bool // the client accepts it
}

// keptBody is a body that was sent. It is right as long as its tag names the content, so nothing has to be invalidated.
type keptBody struct {
	tag    string
	body   []byte
	zipped bool
}

const (
	minZipped   = 1 << 10   // bytes from which a body is compressed
	maxKept     = 256 << 10 // bytes of a body that is kept
	keptBodies  = 64 << 20  // bytes of all of them
	keptBesides = 256       // bytes of one besides its texts, roughly
)

func newKeptBodies() *otter.Cache[bodyKey, keptBody] {
	return otter.Must(&otter.Options[bodyKey, keptBody]{
		MaximumWeight: keptBodies,
		Weigher: func(k bodyKey, b keptBody) uint32 {
			return uint32(len(k.path) + len(k.query) + len(b.body) + keptBesides)
		},
		Executor: func(f func()) { f() }, // no goroutine outlives its caller
	})
}

func (x *exchange) key() bodyKey { return bodyKey{x.c.Request.URL.Path, x.query(), x.gzip} }

// setContent sets what the headers say of the content. Only a body with a tag is compressed.
func (x *exchange) setContent(cache policy, tag string) {
	x.policy, x.tag = cache, tag
	x.gzip = tag != "" && !cache.asIs && acceptsGzip(x.c.Request.Header["Accept-Encoding"])
}

// sendKnown answers without a query where the content of the tag is known: by 304 to a client that has it, else by the kept
// body. It reports whether it has.
func (x *exchange) sendKnown(cache policy, tag string) (sent bool, err error) {
	x.setContent(cache, tag)
	x.keep = true
	kept, isKept := x.bodies.GetIfPresent(x.key())
	isKept = isKept && kept.tag == tag

	// A 304 names the variant that the 200 would be, or that the client has where this is not known.
	if hasPlain, hasZipped := x.clientHas(tag), x.clientHas(tag+"-gzip"); hasPlain || hasZipped || isKept && x.clientHasAny() {
		zipped := hasZipped && x.gzip
		if isKept {
			zipped = kept.zipped
		}
		x.write(http.StatusNotModified, nil, zipped)
		return true, nil
	}

	if !isKept {
		return false, nil
	}
	if err := x.takeMemory(len(kept.body)); err != nil {
		return false, err
	}
	x.write(http.StatusOK, kept.body, kept.zipped)
	return true, nil
}

// clientHas reports whether If-None-Match names the tag. No tag contains quotes, so this is the weak comparison of RFC 9110,
// 13.1.2, of any list of tags.
func (x *exchange) clientHas(tag string) bool {
	for _, line := range x.c.Request.Header["If-None-Match"] {
		if strings.Contains(line, `"`+tag+`"`) {
			return true
		}
	}
	return false
}

func (x *exchange) clientHasAny() bool {
	return strings.TrimSpace(x.c.GetHeader("If-None-Match")) == "*"
}

// takeMemory takes memory for an answer of size bytes, before it is made. Its error is errBusy.
func (x *exchange) takeMemory(size int) error {
	if size <= x.memory {
		return nil
	}
	if err := x.answers.take(size - x.memory); err != nil {
		return err
	}
	x.memory = size
	return nil
}

func (x *exchange) releaseMemory() { x.shrinkMemory(0) }

func (x *exchange) shrinkMemory(size int) {
	x.answers.release(x.memory - size)
	x.memory = size
}

// send sends a body, compressed where the client accepts that, or a 304 to a client that has it.
func (x *exchange) send(body []byte) error {
	if err := x.takeMemory(len(body)); err != nil {
		return err
	}
	zipped := false
	if x.gzip && len(body) >= minZipped {
		smaller := x.gzips.compress(body)
		if zipped = len(smaller) < len(body); zipped {
			body = smaller
			x.shrinkMemory(len(body))
		}
	}

	if x.keep && len(body) <= maxKept {
		key := x.key()
		key.path, key.query = strings.Clone(key.path), strings.Clone(key.query) // the request's memory is used again
		x.bodies.Set(key, keptBody{x.tag, body, zipped})
	}

	if x.tag != "" && (x.clientHasAny() || x.clientHas(x.tag) || x.clientHas(x.tag+"-gzip")) {
		x.write(http.StatusNotModified, nil, zipped)
		return nil
	}
	x.write(http.StatusOK, body, zipped)
	return nil
}

// sendHashed is send for a body that is a function of more than the tag of a view names.
func (x *exchange) sendHashed(cache policy, body []byte) error {
	sum := sha256.Sum256(body)
	x.setContent(cache, hex.EncodeToString(sum[:16]))
	return x.send(body)
}

// sendJSON sends v. tag may be empty.
func (x *exchange) sendJSON(cache policy, tag string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	x.setContent(cache, tag)
	return x.send(body)
}

func (x *exchange) sendRedirect(status int, location string) error {
	x.policy = policy{control: "public, max-age=300"}
	x.c.Header("Location", location)
	x.write(status, nil, false)
	return nil
}

// fail sends a failure: as JSON, or to people as a page.
func (x *exchange) fail(err error) {
	f := failureOf(err)
	if f.status == http.StatusInternalServerError {
		x.logFailure(err.Error())
	}
	asPage := x.failsAsPage(f.status)
	x.setContent(policy{}, "")
	x.media, x.page = "", noPage
	if f.status != http.StatusNotFound || asPage { // that of a donation is of a state
		x.view = nil
	}
	if f.retryAfter != "" {
		x.c.Header("Retry-After", f.retryAfter)
	}

	if asPage {
		x.page = hiddenPage
		x.write(f.status, x.failurePage(f), false)
		return
	}
	x.c.Header(errorHeader, f.code)
	x.write(f.status, []byte(`{"error":"`+f.text+`"}`), false)
}

// errorHeader is the header with the kind of a failure, for programs.
const errorHeader = "Registry-Error"

// logFailure logs with the route alone: queries and ids are about people.
func (x *exchange) logFailure(text string) {
	x.logger.ErrorContext(x.c.Request.Context(), "request failed", "route", routeOf(x.c), "error", text)
}

// write sends the headers, and the body unless the answer is a 304.
func (x *exchange) write(status int, body []byte, zipped bool) {
	h := x.c.Writer.Header()
	x.setHeaders(h, zipped)
	if status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(body)))
		if zipped {
			h.Set("Content-Encoding", "gzip")
		}
	}
	if len(body) > 0 {
		h.Set("Content-Type", x.contentType())
	}

	if !x.atSequence { // a wait for a sequence says nothing about speed
		x.metrics.seconds.WithLabelValues(routeOf(x.c)).Observe(time.Since(x.began).Seconds())
	}
	x.c.Writer.WriteHeader(status)
	x.c.Writer.WriteHeaderNow()
	_, _ = x.c.Writer.Write(body) // fails only if the client has gone
}

func (x *exchange) contentType() string {
	switch {
	case x.media != "":
		return x.media
	case x.page != noPage:
		return "text/html; charset=utf-8"
	}
	return "application/json; charset=utf-8"
}

// setHeaders sets the headers that a 200 and a 304 have in common.
func (x *exchange) setHeaders(h http.Header, zipped bool) {
	setCommonHeaders(h, x.c.Request.URL.Path)
	if x.page != noPage {
		h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "+
			"img-src 'self'; script-src 'self'; style-src 'self'")
		h.Set("Referrer-Policy", "no-referrer") // addresses of pages name persons
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
	if x.page == indexedPage {
		h.Del("X-Robots-Tag")
	}

	if x.view != nil {
		h.Set("Registry-Sequence", strconv.FormatUint(x.view.Sequence(), 10))
		h.Set("Registry-As-Of", FormatTime(x.asOf))
		if x.page != noPage { // says how old the data of a cached page is; see site.js
			h.Set("Last-Modified", x.asOf.UTC().Format(http.TimeFormat))
			h.Set("Server-Timing", `asof;desc="`+FormatTime(x.asOf)+`"`)
		}
	}
	switch {
	case x.tag != "" && zipped:
		h.Set("ETag", `"`+x.tag+`-gzip"`)
	case x.tag != "":
		h.Set("ETag", `"`+x.tag+`"`)
	}
	x.setCacheHeaders(h)
}

// setCacheHeaders sets Vary without regard to the size of the body: a 304 does not know it.
func (x *exchange) setCacheHeaders(h http.Header) {
	var vary []string
	if x.tag != "" && !x.policy.asIs {
		vary = append(vary, "Accept-Encoding")
	}
	if x.view != nil && x.policy.control != "" {
		vary = append(vary, minSeqHeader)
	}
	if len(vary) > 0 {
		h.Set("Vary", strings.Join(vary, ", "))
	}

	switch {
	case !x.noStore && !x.atSequence && x.policy.control != "":
		h.Set("Cache-Control", x.policy.control)
		if x.policy.cdn != "" {
			h.Set("CDN-Cache-Control", x.policy.cdn)
		}
	case x.policy.asIs:
		h.Set("Cache-Control", "no-store, no-transform")
	default:
		h.Set("Cache-Control", "no-store")
	}
}

// setCommonHeaders sets what every answer has. It ignores Origin: a shared cache may give an answer to anybody.
func setCommonHeaders(h http.Header, path string) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", exposedHeaders)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	if isAvatar(path) { // nothing in a picture may run
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	}
}

const exposedHeaders = "Registry-Sequence, Registry-As-Of, Registry-Index-Sequence, Registry-Error, ETag, Retry-After"

// acceptsGzip reports whether Accept-Encoding gives gzip at least the weight of none (RFC 9110, 12.5.3).
func acceptsGzip(lines []string) bool {
	plain, zipped, other := -1.0, -1.0, -1.0
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			coding, parameter, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "identity":
				plain = weight(parameter)
			case "gzip", "x-gzip":
				zipped = weight(parameter)
			case "*":
				other = weight(parameter)
			}
		}
	}
	if zipped < 0 {
		zipped = other
	}
	return zipped > 0 && zipped >= plain
}

// weight reads "q=0.5": 1 if it is absent, and 0, not acceptable, if it is malformed.
func weight(parameter string) float64 {
	parameter = strings.TrimSpace(parameter)
	if parameter == "" {
		return 1
	}
	name, text, _ := strings.Cut(parameter, "=")
	q, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !strings.EqualFold(strings.TrimSpace(name), "q") || !(q >= 0 && q <= 1) {
		return 0
	}
	return q
}

// gzips compresses whole bodies. Any goroutine may use it.
type gzips struct{ writers sync.Pool }

func (g *gzips) compress(body []byte) []byte {
	w, ok := g.writers.Get().(*gzip.Writer)
	if !ok {
		w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for an unknown level
	}
	defer g.writers.Put(w)

	out := bytes.NewBuffer(make([]byte, 0, len(body)/2))
	w.Reset(out)
	_, _ = w.Write(body) // a bytes.Buffer takes all
	_ = w.Close()
	return bytes.Clone(out.Bytes()) // no longer than it must be: it may be kept
}
