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
	"github.com/prometheus/client_golang/prometheus"
)

// handler answers a request: it returns nil once it has sent the answer, else the failure to be sent.
type handler func(x *exchange) error

// exchange is one request and its answer. A handler calls its methods in this order: loadView, sendKnown, search, makeBody,
// send. Only one goroutine uses an exchange.
type exchange struct {
	head
	api   *Public
	c     *gin.Context
	began time.Time
	took  prometheus.Observer // of the time until the answer is made

	gzip   bool // the body may be compressed, and the client accepts that
	keep   bool // send keeps the body, for the next request with the same address and tag
	memory int  // bytes that the answer has taken
}

// serve returns h as a handler of a route for gin. To a client that is over its limit, it sends 429 without calling h.
func (p *Public) serve(route string, limit *rateLimit, h handler) gin.HandlerFunc {
	took := p.metrics.seconds.WithLabelValues(route)
	return func(c *gin.Context) {
		x := &exchange{api: p, c: c, began: time.Now(), took: took}
		defer func() { _ = x.holdMemory(0) }() // to give memory back cannot fail

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

// sendKnown sets how the answer is cached, and its tag. If it can, it then answers without a query: by a 304 to a client that
// has the content of this tag, else by the kept body. It reports whether it has answered; if not, send will keep the body.
func (x *exchange) sendKnown(cache policy, tag string) (sent bool, err error) {
	x.setContent(cache, tag)
	x.keep = true

	// A kept body is right as long as its tag names the content.
	kept, isKept := x.api.bodies.GetIfPresent(x.bodyKey())
	isKept = isKept && kept.tag == tag

	// The ETag of a 304 says, as in the 200, whether the body is compressed. Without a kept body that is not known yet,
	// so the 304 repeats what the client's own tag says.
	if has, hasZipped := x.clientHas(); has {
		x.zipped = hasZipped && x.gzip
		if isKept {
			x.zipped = kept.zipped
		}
		x.writeAnswer(http.StatusNotModified, nil)
		return true, nil
	}

	if !isKept {
		return false, nil
	}

	if err := x.holdMemory(len(kept.body)); err != nil {
		return false, err
	}

	x.zipped = kept.zipped
	x.writeAnswer(http.StatusOK, kept.body)
	return true, nil
}

// setContent sets how the answer is cached, its tag, and whether its body may be compressed. The tag may be empty; then the
// body is not compressed.
func (x *exchange) setContent(cache policy, tag string) {
	x.cache = cache
	x.tag = tag
	x.gzip = tag != "" && !cache.asIs && acceptsGzip(x.c.Request.Header["Accept-Encoding"])
}

// clientHas reports whether the client has the body, because If-None-Match is * or names its tag; zipped reports whether it
// names the tag of the compressed body. It is enough to look for the quoted tag anywhere in the header: no tag contains quotes,
// and RFC 9110, 13.1.2, ignores the W/ before a weak tag.
func (x *exchange) clientHas() (has, zipped bool) {
	tags := strings.Join(x.c.Request.Header["If-None-Match"], ",")
	if tags == "" || x.tag == "" {
		return false, false
	}

	zipped = strings.Contains(tags, `"`+x.tag+`-gzip"`)
	hasPlain := strings.Contains(tags, `"`+x.tag+`"`)
	has = zipped || hasPlain || tags == "*"
	return has, zipped
}

// search runs a query. A costly query, which takes milliseconds, first waits for its turn. net/http ends the request's context
// when the client closes its side of the connection; since such a client may still wait for the answer, the query goes on.
func (x *exchange) search(costly bool, query func(ctx context.Context) error) error {
	ctx := context.WithoutCancel(x.c.Request.Context())
	if costly {
		if err := x.api.searches.take(ctx); err != nil {
			return err
		}
		defer x.api.searches.leave()
	}
	return query(ctx)
}

// sizeOfEnvelope is room for what a body has besides its entries, in bytes.
const sizeOfEnvelope = 256

// makeBody returns an empty body with room for entries of size bytes. It takes the memory from the budget first, which bounds
// what large answers and clients that do not read may hold together. Its error is errBusy.
func (x *exchange) makeBody(size int) ([]byte, error) {
	size += sizeOfEnvelope
	if err := x.holdMemory(size); err != nil {
		return nil, err
	}
	return make([]byte, 0, size), nil
}

// holdMemory takes memory from the budget or gives it back, so that the answer holds size bytes of it. Its error is errBusy.
func (x *exchange) holdMemory(size int) error {
	if err := x.api.memory.take(size - x.memory); err != nil {
		return err
	}
	x.memory = size
	return nil
}

const minZipped = 1 << 10 // bytes from which a body is compressed

// send sends a body, compressed if the client accepts that, or a 304 to a client that has it. After sendKnown, it also keeps
// the body for later requests.
func (x *exchange) send(body []byte) error {
	if x.gzip && len(body) >= minZipped {
		zipped := x.api.gzips.compress(body)
		x.zipped = len(zipped) < len(body)
		if x.zipped {
			body = zipped
		}
	}

	// The body may have become smaller, or larger than was foreseen.
	if err := x.holdMemory(len(body)); err != nil {
		return err
	}

	if x.keep && len(body) <= maxKept {
		// Path and query are parts of the request's first line and would keep all of it in memory: the cache gets copies.
		key := x.bodyKey()
		key.path = strings.Clone(key.path)
		key.query = strings.Clone(key.query)
		x.api.bodies.Set(key, keptBody{tag: x.tag, body: body, zipped: x.zipped})
	}

	if has, _ := x.clientHas(); has {
		x.writeAnswer(http.StatusNotModified, nil)
		return nil
	}
	x.writeAnswer(http.StatusOK, body)
	return nil
}

// sendHashed is send for a body that no tag of the view names, since the body depends on more than the view. The hash of
// the body becomes its tag.
func (x *exchange) sendHashed(cache policy, body []byte) error {
	x.setContent(cache, hashTag(body))
	return x.send(body)
}

func hashTag(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

// sendJSON sends v. The tag may be empty.
func (x *exchange) sendJSON(cache policy, tag string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	x.setContent(cache, tag)
	return x.send(body)
}

// fail sends a failure: to programs as JSON, to people as a page.
func (x *exchange) fail(err error) {
	f := failureOf(err)
	if f.status == http.StatusInternalServerError {
		x.logFailure(err.Error())
	}

	// A failure has no tag and is not cached, whatever the handler has set for a success.
	asPage := x.api.failsAsPage(x.c.Request.URL.Path, f.status)
	x.head = head{waits: x.waits, view: x.view, asOf: x.asOf}

	// The 404 of an unknown donation names the state that lacks the donation. The other 404s that are no pages have loaded no
	// view.
	mayNameState := f.status == http.StatusNotFound && !asPage
	if !mayNameState {
		x.view = nil
	}

	if f.retryAfter != "" {
		x.c.Header("Retry-After", f.retryAfter)
	}
	if asPage {
		x.page = hiddenPage
		x.writeAnswer(f.status, failurePage(x, f))
		return
	}
	x.c.Header(errorHeader, f.code)
	x.writeAnswer(f.status, []byte(`{"error":"`+f.text+`"}`))
}

// logFailure logs a failure of the request. The log gets the pattern of the path only, since paths and queries contain
// ids of people.
func (x *exchange) logFailure(text string) {
	x.api.logger.ErrorContext(x.c.Request.Context(), "request failed", "route", routeOf(x.c), "error", text)
}

// writeAnswer sends the headers and, unless the answer is a 304, the body.
func (x *exchange) writeAnswer(status int, body []byte) {
	h := x.c.Writer.Header()
	x.setHeaders(h, x.c.Request.URL.Path)
	if status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(body)))
		if x.zipped {
			h.Set("Content-Encoding", "gzip")
		}
	}

	if len(body) > 0 {
		h.Set("Content-Type", x.contentType())
	}

	// Stop the clock before the body is sent, so that a slow client does not count as a slow server. A request that asked to
	// wait does not count at all.
	if !x.waits {
		x.took.Observe(time.Since(x.began).Seconds())
	}
	x.c.Writer.WriteHeader(status)
	x.c.Writer.WriteHeaderNow()
	_, _ = x.c.Writer.Write(body) // fails only if the client has gone
}

// bodyKey names a kept body. Another spelling of the same query is another key.
type bodyKey struct {
	path, query string
	gzip        bool // the client accepts it
}

func (x *exchange) bodyKey() bodyKey { return bodyKey{x.c.Request.URL.Path, x.query(), x.gzip} }

// keptBody is a body that was sent. It never has to be invalidated, since it is sent again only while the content still has
// the same tag.
type keptBody struct {
	tag    string
	body   []byte
	zipped bool
}

const (
	maxKept     = 256 << 10 // bytes of a body that is kept
	keptBodies  = 64 << 20  // bytes of all kept bodies
	keptBesides = 256       // bytes that a kept body takes besides its path, query and body, roughly
)

func newKeptBodies() *otter.Cache[bodyKey, keptBody] {
	return otter.Must(&otter.Options[bodyKey, keptBody]{
		MaximumWeight: keptBodies,
		Weigher: func(k bodyKey, b keptBody) uint32 {
			return uint32(len(k.path) + len(k.query) + len(b.body) + keptBesides)
		},
		Executor: func(f func()) { f() }, // asynchronous tasks run in the caller's goroutine
	})
}

// gzips compresses whole bodies. Any goroutine may use it.
type gzips struct{ writers sync.Pool }

func (g *gzips) compress(body []byte) []byte {
	w, ok := g.writers.Get().(*gzip.Writer)
	if !ok {
		w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for an unknown level
	}
	defer g.writers.Put(w)

	// Writing to a bytes.Buffer never fails.
	out := bytes.NewBuffer(make([]byte, 0, len(body)/2))
	w.Reset(out)
	_, _ = w.Write(body)
	_ = w.Close()

	// The result may be kept, so it has no spare capacity.
	return bytes.Clone(out.Bytes())
}
