package httpapi

import (
	"cmp"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/httpapi/verdict"
)

// metrics counts requests by route and status. The label of a route is its pattern, so that no id of a path becomes a label.
type metrics struct {
	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	verdicts  *prometheus.CounterVec
	feedPages prometheus.Counter
	refused   prometheus.Counter // connections
	running   atomic.Int64       // requests that are being answered
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	return &metrics{
		requests: prometheus.NewCounterVec(counter("registry_http_requests_total",
			"Requests answered by the public API, by route and status, and for 503 by the kind of failure (Registry-Error)."), []string{"route", "status", "error"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "registry_http_request_duration_seconds", Help: "Time to make the answer to a request of the public API, by route; requests that ask to wait are left out.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"route"}),
		verdicts: prometheus.NewCounterVec(counter("registry_verdicts_total",
			"Answers of the person check on the site that were made, by verdict; those that were kept are not counted again."), []string{"verdict"}),
		feedPages: prometheus.NewCounter(counter("registry_feed_pages_total",
			"Pages of the feed that were made; those that were kept are counted once.")),
		refused: prometheus.NewCounter(counter("registry_http_connections_refused_total",
			"Public connections that were closed because one client address holds a quarter of all.")),
	}
}

// register registers the metrics of p. The routes of p must be complete, since each gets all its series now. A rate over a series
// that appears with the first error would miss that error.
func (m *metrics) register(reg prometheus.Registerer, p *Public) {
	for _, route := range p.engine.Routes() {
		m.prepare(route.Path)
	}
	m.prepare(noRoute)
	for _, v := range verdict.Values() {
		m.verdicts.WithLabelValues(string(v))
	}

	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}

	reg.MustRegister(m.requests, m.seconds, m.verdicts, m.feedPages, m.refused,
		gauge("registry_ready", "1 while lists, checks and donations are answered, else they are 503.", p.health.ready),
		gauge("registry_feed_waiting", "Requests that wait for a change of the feed.", p.polls.waiting.taken),
		gauge("registry_http_requests_in_flight", "Requests being answered by the public API.", m.running.Load),
		gauge("registry_http_sequence_waiters", "Requests that wait for a sequence (Registry-Min-Sequence).", p.sequenceWaiting.taken),
		gauge("registry_http_searches_queued", "Text searches that wait for others to end.", p.searches.waiting.taken),
		gauge("registry_kept_bodies", "Answers that are kept for the next request.", func() int64 { return int64(p.bodies.EstimatedSize()) }),
		gauge("registry_http_answer_bytes", "Memory of the answers that are being made or sent, with what the garbage collector leaves of them.", p.memory.used.Load),
		gauge("registry_http_answer_bytes_limit", "Most bytes of answers that may be made or sent at once (--answer-memory).", func() int64 { return p.memory.limit }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "registry_http_answers_refused_total", Help: "Answers refused because their bytes did not fit into --answer-memory.",
		}, func() float64 { return float64(p.memory.refused.Load()) }))
}

// prepare makes the series of a route, with the value zero.
func (m *metrics) prepare(route string) {
	for _, status := range []int{http.StatusOK, http.StatusNotModified, http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusGone, http.StatusTooManyRequests, http.StatusInternalServerError} {
		m.requests.WithLabelValues(route, strconv.Itoa(status), "")
	}
	for _, code := range []string{errLoading.code, errBusy.code} {
		m.requests.WithLabelValues(route, strconv.Itoa(http.StatusServiceUnavailable), code)
	}
}

// count counts each request once it is answered. It is the outermost middleware.
func (m *metrics) count(c *gin.Context) {
	m.running.Add(1)
	defer m.running.Add(-1)
	c.Next()

	code := ""
	if c.Writer.Status() == http.StatusServiceUnavailable {
		code = c.Writer.Header().Get(errorHeader)
	}
	m.requests.WithLabelValues(routeOf(c), strconv.Itoa(c.Writer.Status()), code).Inc()
}

const noRoute = "none" // the route of a request whose path has no pattern

// routeOf returns the pattern of the request's path.
func routeOf(c *gin.Context) string { return cmp.Or(c.FullPath(), noRoute) }
