package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/httpapi/respond"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/verdict"
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
		defer p.finish(c, route, m, start)
		answered := h
		if disguised(c.Request.URL) {
			answered = p.unknownPath
		}
		a, err := answered(c)
		if err != nil {
			p.fail(c, route, a, err)
			return
		}
		if err := p.sender.Send(c, &a); err != nil {
			p.fail(c, route, respond.Response{}, err)
		}
	}
}

// disguised reports whether a path is /api/… only after percent-decoding, or has an encoded slash.
// gin would match such a path, although a proxy's rules for a prefix do not
// (httpapi/CONTRACT.md#errors).
func disguised(u *url.URL) bool {
	return u.RawPath != "" && (strings.HasPrefix(u.Path, "/api/") && !strings.HasPrefix(u.RawPath, "/api/") || strings.Contains(strings.ToLower(u.RawPath), "%2f"))
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
func (p *Public) finish(c *gin.Context, route string, m *routeMetrics, start time.Time) {
	v := recover()
	p.metrics.ended.Add(1)
	defer func() { // also if the connection is closed
		took := time.Since(start)
		m.observe(c.Writer.Status(), took)
		if p.requestLog {
			p.logRequest(c, route, took)
		}
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
		again := r.again() && c.Query(site.StopParam) == ""
		if again {
			a.More = append(a.More, "Refresh", r.retryAfter)
		}
		body = p.failurePage(c, r, blamed(err), again)
	}
	a.Body = respond.NewBody(body)
	_ = p.sender.Send(c, &a) // a response without a tag cannot fail
}

// logRequest logs one request (Config.RequestLog).
func (p *Public) logRequest(c *gin.Context, route string, took time.Duration) {
	attrs := []slog.Attr{slog.String("route", route), slog.Int("status", c.Writer.Status()),
		slog.Float64("ms", float64(took.Microseconds())/1000)}
	if id := c.GetHeader("X-Request-Id"); isRequestID(id) {
		attrs = append(attrs, slog.String("requestId", id))
	}
	p.logger.LogAttrs(c.Request.Context(), slog.LevelInfo, "request", attrs...)
}

// isRequestID reports whether s is an id as proxies make them: 8 to 64 letters, digits, '-', '_'
// and '.', and not only digits, as ids of people are.
func isRequestID(s string) bool {
	letter := false
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			letter = true
		default:
			return false
		}
	}
	return letter && len(s) >= 8 && len(s) <= 64
}

// logFailure logs an error with its route. It never logs a query or an id, since those are about
// people.
func (p *Public) logFailure(ctx context.Context, route string, err error) {
	p.logger.LogAttrs(ctx, slog.LevelError, "request failed",
		slog.String("route", route), slog.String("error", err.Error()))
}

// metrics counts requests by route and status. Labels are resolved when a route is added, so a
// request needs no lookup. A route is a pattern, never a path: no id becomes a label.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	verdicts *prometheus.CounterVec
	// connections counts those that were closed: to make room, and beyond a client's share.
	connections [2]prometheus.Counter
	begun       atomic.Uint64
	ended       atomic.Uint64
}

// inFlight returns how many requests are being processed. It reads the ended ones first, so that
// the result is never negative.
func (m *metrics) inFlight() float64 {
	ended := m.ended.Load()
	return float64(m.begun.Load() - ended)
}

// routeMetrics are the metrics of one route.
type routeMetrics struct {
	counts  []statusCount
	other   prometheus.Counter
	seconds prometheus.Observer
}

type statusCount struct {
	status int
	count  prometheus.Counter
}

// newMetrics registers the metrics with reg, unless that is nil.
func newMetrics(reg prometheus.Registerer, refused *prometheus.CounterVec, g *gate, s *searches, b *respond.Cache[query], f *followers, answers *respond.Budget) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "registry_http_requests_total", Help: "Requests answered by the public API, by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "registry_http_request_duration_seconds", Help: "Time to answer a request of the public API, by route.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"route"}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "registry_verdicts_total", Help: "Answers of the person check on the site that were made, by verdict; those that were remembered are not counted again.",
		}, []string{"verdict"}),
	}
	closed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "registry_http_connections_closed_total",
		Help: "Public connections that were closed because all are taken, the longest idle first (full), or because one client address holds a quarter of them (share).",
	}, []string{"reason"})
	m.connections = [2]prometheus.Counter{closed.WithLabelValues("full"), closed.WithLabelValues("share")}
	for _, v := range verdict.Values() {
		m.verdicts.WithLabelValues(string(v))
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.seconds, m.verdicts, closed, refused, f.cut, f.pages,
			gauge("registry_feed_waiting", "Requests that wait for a change of the feed.", f.waiting.count),
			gauge("registry_feed_followers", "Readers that follow the feed as events.", f.following.count),
			measure("registry_http_requests_in_flight", "Requests being answered by the public API.", m.inFlight),
			gauge("registry_http_sequence_waiters", "Requests that wait for a sequence (Registry-Min-Sequence).", g.waiting.count),
			gauge("registry_http_searches_queued", "Text searches that wait for others to end.", s.count),
			measure("registry_http_answer_bytes", "Bytes of the answers that are being made or sent; those that readers share count once.",
				func() float64 { return float64(answers.Used()) }),
			measure("registry_http_answer_bytes_limit", "Most bytes of answers that may be made or sent at once (--answer-memory).",
				func() float64 { return float64(answers.Limit()) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "registry_http_answers_refused_total",
				Help: "Answers refused because their bytes did not fit into --answer-memory."},
				func() float64 { return float64(answers.Refused()) }),
			measure("registry_ready", "1 while lists, checks and donations are answered, else they are 503.", g.ready),
			measure("registry_remembered_pages", "Answers that are remembered because they were asked for again.",
				func() float64 { return float64(b.Len()) }),
			measure("registry_remembered_pages_bytes", "Memory of the remembered answers, by estimate.",
				func() float64 { return float64(b.Size()) }))
	}
	return m
}

func measure(name, help string, value func() float64) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func gauge(name, help string, count func() int) prometheus.GaugeFunc {
	return measure(name, help, func() float64 { return float64(count()) })
}

// route returns the metrics of a route. The most frequent statuses come first.
func (m *metrics) route(name string) *routeMetrics {
	r := &routeMetrics{other: m.requests.WithLabelValues(name, "other"), seconds: m.seconds.WithLabelValues(name)}
	for _, status := range []int{
		http.StatusOK, http.StatusNotModified, http.StatusNotFound, http.StatusGone, http.StatusBadRequest, http.StatusMethodNotAllowed,
		http.StatusNoContent, http.StatusFound, http.StatusTooManyRequests, http.StatusServiceUnavailable,
		http.StatusInternalServerError,
	} {
		r.counts = append(r.counts, statusCount{status, m.requests.WithLabelValues(name, strconv.Itoa(status))})
	}
	return r
}

func (r *routeMetrics) observe(status int, took time.Duration) {
	r.seconds.Observe(took.Seconds())
	for i := range r.counts {
		if r.counts[i].status == status {
			r.counts[i].count.Inc()
			return
		}
	}
	r.other.Inc()
}
