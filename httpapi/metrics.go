package httpapi

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by route and status. Everything is resolved when a route is made: a
// request looks up no label. Routes are patterns, never paths: no id becomes a label.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight atomic.Int64
}

// routeMetrics is the metrics of one route.
type routeMetrics struct {
	counts  []statusCount
	other   prometheus.Counter
	seconds prometheus.Observer
}

type statusCount struct {
	status int
	count  prometheus.Counter
}

// newMetrics registers with reg, unless that is nil.
func newMetrics(reg prometheus.Registerer, a *admitter, s *searches, p *pages) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "registry_http_requests_total", Help: "Requests answered by the public API, by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "registry_http_request_duration_seconds", Help: "Time to answer a request of the public API, by route.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"route"}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.seconds,
			gauge("registry_http_requests_in_flight", "Requests being answered by the public API.", &m.inFlight),
			gauge("registry_http_sequence_waiters", "Requests that wait for a sequence (Registry-Min-Sequence).", &a.waiting),
			gauge("registry_http_searches_queued", "Text searches that wait for others to end.", &s.waiting),
			measure("registry_ready", "1 while lists, checks and donations are answered, else they are 503.", a.ready),
			measure("registry_remembered_pages", "Answers that are remembered because they were asked for again.",
				func() float64 { return float64(p.cache.EstimatedSize()) }),
			measure("registry_remembered_pages_bytes", "Memory of the remembered answers, by estimate.",
				func() float64 { return float64(p.cache.WeightedSize()) }))
	}
	return m
}

func measure(name, help string, value func() float64) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func gauge(name, help string, n *atomic.Int64) prometheus.GaugeFunc {
	return measure(name, help, func() float64 { return float64(n.Load()) })
}

// route makes the metrics of a route; the statuses most often seen come first.
func (m *metrics) route(name string) *routeMetrics {
	r := &routeMetrics{other: m.requests.WithLabelValues(name, "other"), seconds: m.seconds.WithLabelValues(name)}
	for _, status := range []int{
		http.StatusOK, http.StatusNotModified, http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed,
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
