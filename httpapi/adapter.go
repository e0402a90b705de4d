package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/httpapi/respond"
)

// handler returns the response to a request, or an error. It writes nothing itself. Only the state
// of a response next to an error is sent.
type handler func(c *gin.Context) (respond.Response, error)

// adapt makes gin call a handler. It counts the request, turns an error into the response of the
// table in errors.go, and a panic into an error.
func (p *Public) adapt(route string, h handler) gin.HandlerFunc {
	m := p.metrics.route(route)
	return func(c *gin.Context) {
		start := time.Now()
		p.metrics.begun.Add(1)
		var a respond.Response
		defer p.finish(c, route, m, start, &a)
		var err error
		a, err = h(c)
		if err != nil {
			p.fail(c, route, a, err)
			return
		}
		if err := p.sender.Send(c, &a); err != nil {
			p.fail(c, route, respond.Response{}, err)
		}
	}
}

// limitedBy applies a rate limit, if there is one, before h.
func limitedBy(limit *rateLimit, h handler) handler {
	if limit == nil {
		return h
	}
	return func(c *gin.Context) (respond.Response, error) {
		if err := limit.allow(c.Request); err != nil {
			return respond.Response{}, err
		}
		return h(c)
	}
}

// otherMethod responds to a request for a documented path by another method than GET: 204 to a
// preflight, 405 to anything else (httpapi/CONTRACT.md#methods). gin has set Allow.
func (p *Public) otherMethod(c *gin.Context) (respond.Response, error) {
	if !respond.IsPreflight(c.Request) {
		return respond.Response{}, errMethod
	}
	c.Writer.Header().Del("Allow")
	return respond.Response{
		Finish: p.preflight,
		Cache:  &respond.Policy{}, // preflights have their own cache
	}, nil
}

// finish ends a request. adapt defers it, since recover works only in the deferred function itself.
func (p *Public) finish(c *gin.Context, route string, m *routeMetrics, start time.Time, a *respond.Response) {
	v := recover()
	p.metrics.ended.Add(1)
	defer func() { // also if the connection is closed
		making := time.Since(start) // a client that takes its answer slowly makes no server slow
		if !a.Made.IsZero() {
			making = a.Made.Sub(start)
		}
		m.observe(c.Writer.Status(), c.Writer.Header(), c.GetHeader(minSeqHeader) != "", making)
	}()
	if v != nil {
		p.recovered(c, route, v)
	}
}

// recovered responds with 500. If part of a response has been sent already, it closes the
// connection instead, so that the response does not look complete.
func (p *Public) recovered(c *gin.Context, route string, v any) {
	if v == http.ErrAbortHandler { //nolint:errorlint // a sentinel, never wrapped
		panic(v)
	}
	err := &panicError{v, debug.Stack()}
	if c.Writer.Written() {
		p.logFailure(c.Request.Context(), route, err)
		panic(http.ErrAbortHandler)
	}
	h := c.Writer.Header()
	connection := h["Connection"] // closing the connection holds for any response
	clear(h)
	if connection != nil {
		h["Connection"] = connection
	}
	p.fail(c, route, respond.Response{}, err)
}

// fail sends the error's row of the table in errors.go, with the state of the response that came
// with the error.
func (p *Public) fail(c *gin.Context, route string, with respond.Response, err error) {
	r := replyTo(err)
	if r.status == http.StatusInternalServerError {
		p.logFailure(c.Request.Context(), route, err)
	}
	a := respond.Response{Status: r.status, At: with.At, NoStore: with.NoStore}
	if r.retryAfter != "" {
		a.More = []string{"Retry-After", r.retryAfter}
	}
	body := r.appendJSON(nil)
	if !p.failsAsPage(c.Request.URL.Path, r.status) {
		a.More = append(a.More, errorHeader, r.code)
	} else {
		a.Page = respond.HiddenPage
		body = p.failurePage(c, r, blamed(err))
	}
	a.Body = respond.NewBody(body)
	_ = p.sender.Send(c, &a) // a response without a tag cannot fail
}

// logFailure logs an error with its route. It never logs a query or an id, since those are about
// people.
func (p *Public) logFailure(ctx context.Context, route string, err error) {
	p.logger.LogAttrs(ctx, slog.LevelError, "request failed",
		slog.String("route", route), slog.String("error", err.Error()))
}
