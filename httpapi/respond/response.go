package respond

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// Response is a handler's response. [Sender.Send] derives the headers from it; handlers set none. The
// zero value is an uncacheable 200 with no body.
type Response struct {
	Status  int      // zero means 200
	Media   []string // Content-Type; if nil, JSON or, for a page, HTML
	Page    Page
	Cache   *Policy  // nil if no cache may store it
	At      *Stamp   // the state of the registry that it was computed from, if any
	NoStore bool     // no cache may store it, regardless of Cache
	Tags    *Tags    // nil if it has no tag, and is never 304 or encoded
	More    []string // headers of this response alone: names as net/http spells them, each before its value
	Body    *Body    // if nil, Build makes it or, without Build, the body is empty
	// Build appends the body, and is not called for a 304 that needs no body.
	// It takes Room before it appends what may be large.
	Build func(dst []byte) ([]byte, error)
	// Room is what the response has taken of the sender's Budget; Send releases it. If nil, it has
	// taken nothing. Failures are not counted: they are small, and always sent.
	Room *Room
	// Finish writes the rest after the headers, in place of status and body. If nil, Send does.
	Finish gin.HandlerFunc
	// Made is when Send had made the body, and begins to wait for the client to take it.
	Made time.Time
}

// Page distinguishes pages of the site from responses of the API.
type Page uint8

// The kinds of a page.
const (
	NoPage      Page = iota
	HiddenPage       // no search engine may show it
	IndexedPage      // search engines may show it
)

// Policy is the caching headers of a response.
type Policy struct {
	Control []string // Cache-Control
	CDN     []string // CDN-Cache-Control, if any
	AsIs    bool     // never encoded, not even by a cache: the length must not reveal the content
}

// Cached returns a policy with one Cache-Control header.
func Cached(cacheControl string) *Policy { return &Policy{Control: []string{cacheControl}} }

// JSON returns a response with v as its body.
func JSON(v any) (Response, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return Response{}, fmt.Errorf("encode the response: %w", err)
	}
	return Response{Body: NewBody(body)}, nil
}

// Redirect returns a redirect to location.
func Redirect(status int, location string) Response {
	return Response{Status: status, Cache: Cached("public, max-age=300"), More: []string{"Location", location}}
}

// Sender sends responses. Any goroutine may use it.
type Sender struct {
	budget     *Budget
	fixed      fixed
	compressor *compressor
	buffers    buffers
	sandboxed  func(path string) bool
}

// NewSender returns a Sender. At paths for which sandboxed returns true, nothing in a response may
// run, not even if a browser opens it directly.
func NewSender(budget *Budget, sandboxed func(path string) bool) *Sender {
	return &Sender{budget: budget, fixed: newFixed(), compressor: &compressor{}, sandboxed: sandboxed}
}

// Send sends r, or a 304 to a client that has its body.
func (s *Sender) Send(c *gin.Context, r *Response) error {
	e, client := identity, clientTags{}
	if r.Tags != nil {
		if !r.Cache.AsIs {
			e = negotiate(c.Request.Header["Accept-Encoding"])
		}
		client = r.Tags.matchClient(c.Request.Header["If-None-Match"])
	}
	body, room := r.Body, r.Room
	if room == nil && r.Status < http.StatusBadRequest {
		room = s.budget.Room()
	}
	defer room.Release()
	var buf *[]byte // of a body that is built here; nil once it is no longer needed
	if r.Build != nil && !client.isNotModified(e) {
		buf = s.buffers.get()
		built, err := r.Build((*buf)[:0])
		defer func() {
			if buf != nil {
				s.buffers.put(buf, built)
			}
		}()
		if err != nil {
			return err
		}
		body = NewBody(built)
	}
	if body != nil {
		e = e.orIdentity(body.Plain())
	}
	if client.any {
		s.setHeaders(c, r, e)
		c.Writer.WriteHeader(http.StatusNotModified)
		c.Writer.WriteHeaderNow()
		return nil
	}
	leave, err := s.count(body, r, room, e)
	if err != nil {
		return err
	}
	defer leave()
	v, err := body.encoded(e, s.compressor)
	if err != nil {
		return err
	}
	if buf != nil && e != identity { // only the variant is sent
		s.buffers.put(buf, body.Plain())
		buf = nil
		if err := room.resize(len(v.body)); err != nil {
			return err
		}
	}
	s.setHeaders(c, r, e)
	if r.Finish != nil {
		r.Finish(c)
		return nil
	}
	s.write(c, r, body != nil, e, v)
	return nil
}

// count takes the bytes of a body and of its variant in e out of the budget, until leave. A body that
// other responses may send too is counted once. One that was built for this response is counted
// already, and its variant is at most as long.
func (s *Sender) count(body *Body, r *Response, room *Room, e encoding) (leave func(), err error) {
	n := 0
	if body != nil {
		n = len(body.Plain())
	}
	switch {
	case body == nil || room == nil:
		return func() {}, nil
	case body != r.Body || r.Room != nil:
		if err := room.resize(n); err != nil || e == identity {
			return func() {}, err
		}
		return func() {}, room.Take(n)
	case e != identity:
		n *= 2
	}
	return body.sharing.leave, body.sharing.enter(s.budget, n)
}

func (s *Sender) write(c *gin.Context, r *Response, hasBody bool, e encoding, v *variant) {
	h := c.Writer.Header()
	h["Content-Length"] = v.length
	if e != identity {
		h["Content-Encoding"] = s.fixed.encodings[e]
	}
	switch {
	case !hasBody:
	case r.Media != nil:
		h["Content-Type"] = r.Media
	case r.Page != NoPage:
		h["Content-Type"] = s.fixed.html
	default:
		h["Content-Type"] = s.fixed.json
	}
	if r.Status != 0 {
		c.Writer.WriteHeader(r.Status)
	}
	r.Made = time.Now()
	c.Writer.WriteHeaderNow()
	_, _ = c.Writer.Write(v.body) // fails only if the client has disconnected
}

// maxPooled is the size in bytes of the largest buffer that is reused.
const maxPooled = 1 << 20

// buffers is a pool of buffers for building bodies. Any goroutine may use it.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	return new(make([]byte, 0, 16<<10))
}

// put returns the buffer of get, which has grown into used. Its bytes must no longer be in use.
func (b *buffers) put(p *[]byte, used []byte) {
	if cap(used) <= maxPooled {
		*p = used[:0]
		b.pool.Put(p)
	}
}
