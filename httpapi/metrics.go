package httpapi

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/httpapi/respond"
	"example.org/registry/httpapi/verdict"
)

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
	failed string // the value of errorHeader, where both kinds of 503 are told apart
	count  prometheus.Counter
}

// newMetrics registers the metrics with reg, unless that is nil.
func newMetrics(reg prometheus.Registerer, refused *prometheus.CounterVec, g *gate, s *searches, b *respond.Cache[query], f *pollers, answers *respond.Budget) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "registry_http_requests_total", Help: "Requests answered by the public API, by route and status, and for 503 by the kind of failure (Registry-Error).",
		}, []string{"route", "status", "error"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "registry_http_request_duration_seconds", Help: "Time to make the answer to a request of the public API, by route; requests that ask for a sequence to be waited for are left out.",
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
		reg.MustRegister(m.requests, m.seconds, m.verdicts, closed, refused, f.pages,
			gauge("registry_feed_waiting", "Requests that wait for a change of the feed.", f.waiting.count),
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
	r := &routeMetrics{other: m.requests.WithLabelValues(name, "other", ""), seconds: m.seconds.WithLabelValues(name)}
	for _, status := range []int{
		http.StatusOK, http.StatusNotModified, http.StatusNotFound, http.StatusGone, http.StatusBadRequest, http.StatusMethodNotAllowed,
		http.StatusNoContent, http.StatusFound, http.StatusTooManyRequests, http.StatusServiceUnavailable,
		http.StatusInternalServerError,
	} {
		r.counts = append(r.counts, statusCount{status, "", m.requests.WithLabelValues(name, strconv.Itoa(status), "")})
	}
	for _, failed := range []string{"not-ready", "overloaded"} {
		r.counts = append(r.counts, statusCount{http.StatusServiceUnavailable, failed,
			m.requests.WithLabelValues(name, strconv.Itoa(http.StatusServiceUnavailable), failed)})
	}
	return r
}

// observe counts a response with its status and headers. waited tells that the request was to wait for a
// sequence, which says nothing about speed.
func (r *routeMetrics) observe(status int, header http.Header, waited bool, took time.Duration) {
	if !waited {
		r.seconds.Observe(took.Seconds())
	}
	failed := ""
	if status == http.StatusServiceUnavailable {
		failed = header.Get(errorHeader)
	}
	for i := range r.counts {
		if r.counts[i].status == status && r.counts[i].failed == failed {
			r.counts[i].count.Inc()
			return
		}
	}
	r.other.Inc()
}
