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

// exchange is one request and its answer. A handler reads the parameters, loads a view and sends one answer: with sendKept if a
// tag of the view names the content, else with send, sendHashed or sendJSON. Only one goroutine uses an exchange.
type exchange struct {
	head
	api   *Public
	c     *gin.Context
	began time.Time
	took  prometheus.Observer // gets the time that making the answer took

	gzip   bool // the body may be compressed, and the client accepts that
	memory int  // bytes that the answer holds of the budget; serve gives them back
}

// serve returns h as a handler of a route for gin. To a client that is over its limit, it sends 429 without calling h.
func (p *Public) serve(route string, limit *rateLimit, h handler) gin.HandlerFunc {
	took := p.metrics.seconds.WithLabelValues(route)
	return func(c *gin.Context) {
		x := &exchange{api: p, c: c, began: time.Now(), took: took}
		defer func() { _ = x.holdMemory(0) }() // giving memory back cannot fail

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

// sendKept sends the content that tag names. It calls makeBody only if no body with this tag is kept and the
// client does not have the content. The body is then kept for the next request with the same address.
func (x *exchange) sendKept(cache policy, tag string, makeBody func() ([]byte, error)) error {
	x.setContent(cache, tag)

	kept, isKept := x.api.bodies.GetIfPresent(x.bodyKey())
	isKept = isKept && kept.tag == tag // a kept body with another tag is outdated
	if isKept {
		return x.sendBody(kept)
	}

	// Without a body, the 304 repeats the client's ETag, unless the client no longer accepts gzip.
	has, hasZipped := x.clientHas()
	if has {
		x.zipped = hasZipped && x.gzip
		x.writeAnswer(http.StatusNotModified, nil)
		return nil
	}

	made, err := makeBody()
	if err != nil {
		return err
	}

	body := x.encode(made)
	x.keep(body)
	return x.sendBody(body)
}

// send sends a body without keeping it. The tag may be empty.
func (x *exchange) send(cache policy, tag string, body []byte) error {
	x.setContent(cache, tag)
	return x.sendBody(x.encode(body))
}

// sendHashed sends a body that depends on more than the view, so that no tag of the view can name it. The hash of the body
// becomes its tag.
func (x *exchange) sendHashed(cache policy, body []byte) error {
	return x.send(cache, hashTag(body), body)
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
	return x.send(cache, tag, body)
}

// setContent sets the cache policy and the tag of the answer, and whether its body may be compressed. A body without a tag is
// not compressed.
func (x *exchange) setContent(cache policy, tag string) {
	x.cache = cache
	x.tag = tag
	x.gzip = tag != "" && !cache.asIs && acceptsGzip(x.c.Request.Header["Accept-Encoding"])
}

// clientHas reports whether If-None-Match is * or names the answer's tag; zipped reports whether it names the tag of the
// compressed body. Looking for the quoted tag anywhere in the header is enough: no tag contains quotes, and the W/ of a weak
// tag does not matter (RFC 9110, 13.1.2).
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

// search returns the result of a query. If the query searches texts, which takes milliseconds, it first waits for a turn.
func search[T any](x *exchange, searchesTexts bool, query func(ctx context.Context) (T, error)) (found T, err error) {
	// net/http cancels the request's context when the client closes its side of the connection, but such a client may still
	// read the answer.
	ctx := context.WithoutCancel(x.c.Request.Context())
	if searchesTexts {
		if err := x.api.searches.take(ctx); err != nil {
			return found, err
		}
		defer x.api.searches.leave()
	}
	return query(ctx)
}

// sizeOfEnvelope estimates the bytes of a body besides its entries.
const sizeOfEnvelope = 256

// makeBody makes a body: appendTo appends content, whose entries have size bytes. Its error is errBusy.
func makeBody[T any](x *exchange, size int, content T, appendTo func(dst []byte, content T) []byte) ([]byte, error) {
	body, err := x.newBody(size)
	if err != nil {
		return nil, err
	}
	return appendTo(body, content), nil
}

// newBody returns an empty body with room for entries of size bytes. It first takes the memory from the budget that all answers
// share. Its error is errBusy.
func (x *exchange) newBody(size int) ([]byte, error) {
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

// encodedBody is a body as it is sent.
type encodedBody struct {
	tag    string
	bytes  []byte
	zipped bool
}

const minZipped = 1 << 10 // bytes from which a body is compressed

// encode compresses a body, if the client accepts that and the body shrinks.
func (x *exchange) encode(body []byte) encodedBody {
	if x.gzip && len(body) >= minZipped {
		zipped := x.api.gzips.compress(body)
		if len(zipped) < len(body) {
			return encodedBody{x.tag, zipped, true}
		}
	}
	return encodedBody{x.tag, body, false}
}

// sendBody sends a body, or a 304 to a client that has it.
func (x *exchange) sendBody(body encodedBody) error {
	x.zipped = body.zipped // the ETag says so, even in a 304
	if has, _ := x.clientHas(); has {
		x.writeAnswer(http.StatusNotModified, nil)
		return nil
	}

	// A kept body holds no memory yet, and a new one may be smaller or larger than newBody assumed.
	if err := x.holdMemory(len(body.bytes)); err != nil {
		return err
	}
	x.writeAnswer(http.StatusOK, body.bytes)
	return nil
}

// fail sends a failure: to programs as JSON, to people as a page.
func (x *exchange) fail(err error) {
	f := failureOf(err)
	if f.status == http.StatusInternalServerError {
		x.logFailure(err.Error())
	}

	// A failure has no tag and is not cached, whatever the handler has set for a success.
	failed := head{waits: x.waits}
	asPage := x.api.failsAsPage(x.c.Request.URL.Path, f.status)
	if f.status == http.StatusNotFound && !asPage {
		// Of these 404s, only the one for an unknown donation has a view: the headers name the state that lacks the donation.
		failed.view = x.view
		failed.asOf = x.asOf
	}
	x.head = failed

	if f.retryAfter != "" {
		x.c.Header("Retry-After", f.retryAfter)
	}
	if asPage {
		x.page = unindexedPage
		x.writeAnswer(f.status, failurePage(x, f))
		return
	}
	x.c.Header(errorHeader, f.code)
	x.writeAnswer(f.status, []byte(`{"error":"`+f.text+`"}`))
}

// logFailure logs a failure of the request. Paths and queries contain ids of people, so the log gets only the route's pattern.
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
	gzip        bool // as in exchange: a client that accepts gzip gets another body
}

func (x *exchange) bodyKey() bodyKey { return bodyKey{x.c.Request.URL.Path, x.query(), x.gzip} }

// keep keeps a body. It is sent again only while the content has the same tag, so nothing has to invalidate it.
func (x *exchange) keep(body encodedBody) {
	if len(body.bytes) > maxKeptBody {
		return
	}

	// Path and query are substrings of the request's first line and would retain all of it, so the key gets copies.
	key := x.bodyKey()
	key.path = strings.Clone(key.path)
	key.query = strings.Clone(key.query)
	x.api.bodies.Set(key, body)
}

const (
	maxKeptBody   = 256 << 10 // bytes of one kept body
	maxKeptBodies = 64 << 20  // bytes of all kept bodies
	keptOverhead  = 256       // bytes that the cache needs for a kept body besides its path, query and body, roughly
)

func newKeptBodies() *otter.Cache[bodyKey, encodedBody] {
	return otter.Must(&otter.Options[bodyKey, encodedBody]{
		MaximumWeight: maxKeptBodies,
		Weigher: func(k bodyKey, b encodedBody) uint32 {
			return uint32(len(k.path) + len(k.query) + len(b.bytes) + keptOverhead)
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
