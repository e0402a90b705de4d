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

// metrics counts requests by route and status. A route is a pattern, never a path: no id becomes a label.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	verdicts *prometheus.CounterVec
	refused  prometheus.Counter // connections
	begun    atomic.Uint64
	running  atomic.Int64
}

func newMetrics() *metrics {
	return &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "registry_http_requests_total", Help: "Requests answered by the public API, by route and status, and for 503 by the kind of failure (Registry-Error).",
		}, []string{"route", "status", "error"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "registry_http_request_duration_seconds", Help: "Time to make the answer to a request of the public API, by route; requests that ask for a sequence to be waited for are left out.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"route"}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "registry_verdicts_total", Help: "Answers of the person check on the site that were made, by verdict; those that were kept are not counted again.",
		}, []string{"verdict"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "registry_http_connections_refused_total", Help: "Public connections that were closed because one client address holds a quarter of all.",
		}),
	}
}

// register registers the metrics of p, once its routes are known. Every series exists from the start: a rate over one that
// appears with the first error would miss that error.
func (m *metrics) register(reg prometheus.Registerer, p *Public) {
	for _, route := range p.engine.Routes() {
		m.prepare(route.Path)
	}
	m.prepare(noRoute)
	for _, v := range verdict.Values() {
		m.verdicts.WithLabelValues(string(v))
	}

	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	reg.MustRegister(m.requests, m.seconds, m.verdicts, m.refused, p.polls.pages,
		gauge("registry_feed_waiting", "Requests that wait for a change of the feed.", func() float64 { return float64(len(p.polls.waiting)) }),
		gauge("registry_http_requests_in_flight", "Requests being answered by the public API.", func() float64 { return float64(m.running.Load()) }),
		gauge("registry_http_sequence_waiters", "Requests that wait for a sequence (Registry-Min-Sequence).", func() float64 { return float64(len(p.sequenceWaiting)) }),
		gauge("registry_http_searches_queued", "Text searches that wait for others to end.", func() float64 { return float64(len(p.searches.waiting)) }),
		gauge("registry_http_answer_bytes", "Bytes of the answers that are being made or sent.", func() float64 { return float64(p.answers.used.Load()) }),
		gauge("registry_http_answer_bytes_limit", "Most bytes of answers that may be made or sent at once (--answer-memory).", func() float64 { return float64(p.answers.limit) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "registry_http_answers_refused_total",
			Help: "Answers refused because their bytes did not fit into --answer-memory."}, func() float64 { return float64(p.answers.refused.Load()) }),
		gauge("registry_ready", "1 while lists, checks and donations are answered, else they are 503.", p.ready),
		gauge("registry_kept_bodies", "Answers that are kept for the next request.", func() float64 { return float64(p.bodies.EstimatedSize()) }),
		gauge("registry_kept_bodies_bytes", "Memory of the kept answers, by estimate.", func() float64 { return float64(p.bodies.WeightedSize()) }))
}

func (m *metrics) prepare(route string) {
	m.seconds.WithLabelValues(route)
	for _, status := range []int{http.StatusOK, http.StatusNotModified, http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusGone, http.StatusTooManyRequests, http.StatusInternalServerError} {
		m.requests.WithLabelValues(route, strconv.Itoa(status), "")
	}
	for _, failed := range []string{"not-ready", "overloaded"} {
		m.requests.WithLabelValues(route, strconv.Itoa(http.StatusServiceUnavailable), failed)
	}
}

// ready returns 1 while lists, checks and donations are answered, else 0.
func (p *Public) ready() float64 {
	if _, _, err := p.health.View(); err != nil {
		return 0
	}
	return 1
}

// count is the outermost middleware.
func (m *metrics) count(c *gin.Context) {
	m.begun.Add(1)
	m.running.Add(1)
	defer m.running.Add(-1)
	c.Next()

	failed := ""
	if c.Writer.Status() == http.StatusServiceUnavailable {
		failed = c.Writer.Header().Get(errorHeader)
	}
	m.requests.WithLabelValues(routeOf(c), strconv.Itoa(c.Writer.Status()), failed).Inc()
}

const noRoute = "none"

// routeOf returns the pattern of the request's path.
func routeOf(c *gin.Context) string { return cmp.Or(c.FullPath(), noRoute) }
