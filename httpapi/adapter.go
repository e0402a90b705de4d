package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

// handler answers a request, or returns why it cannot without having written anything.
type handler func(c *gin.Context) error

// adapt is the one way from gin to a handler: it counts, turns an error into the answer of the
// table, and a panic into an error. It takes the place of a chain of middlewares, each of which
// would cost every request.
func (p *Public) adapt(route string, h handler) gin.HandlerFunc {
	m := p.metrics.route(route)
	return func(c *gin.Context) {
		start := time.Now()
		p.metrics.inFlight.Add(1)
		defer p.finish(c, route, m, start)
		if err := h(c); err != nil {
			p.fail(c, route, err)
		}
	}
}

// limited puts the rate limit before h, which it returns as it is where there is no limit.
func (p *Public) limited(h handler) handler {
	if p.limit == nil {
		return h
	}
	return func(c *gin.Context) error {
		if err := p.limit.take(c.Request); err != nil {
			return err
		}
		return h(c)
	}
}

// finish is deferred by adapt: recover works in the deferred function only. An answer that is cut
// off has no status to count.
func (p *Public) finish(c *gin.Context, route string, m *routeMetrics, start time.Time) {
	v := recover()
	p.metrics.inFlight.Add(-1)
	if v != nil {
		p.recovered(c, route, v)
	}
	m.observe(c.Writer.Status(), time.Since(start))
}

// recovered answers 500, or cuts the connection where half an answer is already on its way: it
// must not look complete.
func (p *Public) recovered(c *gin.Context, route string, v any) {
	if v == http.ErrAbortHandler { //nolint:errorlint // a sentinel that is panicked with as it is
		panic(v)
	}
	err := &panicError{v, debug.Stack()}
	if c.Writer.Written() {
		p.logFailure(c.Request.Context(), route, err)
		panic(http.ErrAbortHandler)
	}
	clear(c.Writer.Header())
	p.fail(c, route, err)
}

// fail answers with the error's row of the table.
func (p *Public) fail(c *gin.Context, route string, err error) {
	r := replyTo(err)
	if r.status == http.StatusInternalServerError {
		p.logFailure(c.Request.Context(), route, err)
	}
	h := c.Writer.Header()
	p.fixed.common(h)
	if route == avatarRoute {
		sandboxed(c)
	}
	h["Cache-Control"] = p.fixed.noStore
	h["Content-Type"] = p.fixed.json
	if r.retryAfter != "" {
		h["Retry-After"] = []string{r.retryAfter}
	}
	body := r.appendJSON(nil)
	if p.failsAsPage(c.Request.URL.Path, r.status) {
		body = p.failurePage(c, r, blamed(err))
	}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.Writer.WriteHeader(r.status)
	_, _ = c.Writer.Write(body) // fails only when the reader has gone
}

// logFailure names the route, never the query or an id: those are about people.
func (p *Public) logFailure(ctx context.Context, route string, err error) {
	p.logger.LogAttrs(ctx, slog.LevelError, "request failed",
		slog.String("route", route), slog.String("error", err.Error()))
}
