package httpapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The names of the upstreams in metrics and logs. The first four are the components of the
// status, the last two the halves of the chat platform.
const (
	upstreamDatabase = "database"
	upstreamGuard    = "guard"
	upstreamChat     = "chat"
	upstreamCoin     = "coin"
	upstreamChatAPI  = "chat_api"
	upstreamChatCDN  = "chat_cdn"
)

// upstreamMetrics counts calls of what is not this process. No address and no id is a label.
type upstreamMetrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// newUpstreamMetrics registers with reg, unless that is nil. Every series is there from the
// start: a rate over one that appears with the first error would miss that error.
func newUpstreamMetrics(reg prometheus.Registerer) *upstreamMetrics {
	m := &upstreamMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "registry_upstream_requests_total",
			Help: "Calls of the status components and of the chat platform, by outcome; errors are all but ok and not_found.",
		}, []string{"upstream", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "registry_upstream_request_duration_seconds", Help: "Time until a status component or the chat platform answered or failed.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 6.5},
		}, []string{"upstream"}),
	}
	for _, upstream := range []string{upstreamDatabase, upstreamGuard, upstreamChat, upstreamCoin, upstreamChatAPI, upstreamChatCDN} {
		m.seconds.WithLabelValues(upstream)
		for _, o := range outcomes() {
			m.calls.WithLabelValues(upstream, string(o))
		}
	}
	if reg != nil {
		reg.MustRegister(m.calls, m.seconds)
	}
	return m
}

func (m *upstreamMetrics) observe(upstream string, o outcome, took time.Duration) {
	m.calls.WithLabelValues(upstream, string(o)).Inc()
	m.seconds.WithLabelValues(upstream).Observe(took.Seconds())
}
