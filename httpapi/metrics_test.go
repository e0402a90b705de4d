package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// The metrics tell a server that is not ready from one that is overloaded, and a request that waits for a sequence is no slow one.
func TestMetricsOfFailures(t *testing.T) {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests"}, []string{"route", "status", "error"}),
		seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seconds"}, []string{"route"}),
	}
	r := m.route("/x")
	for _, failed := range []string{"not-ready", "overloaded", "overloaded", ""} {
		r.observe(http.StatusServiceUnavailable, http.Header{errorHeader: {failed}}, failed == "not-ready", 0)
	}
	for failed, want := range map[string]float64{"not-ready": 1, "overloaded": 2, "": 1} {
		require.InDelta(t, want, testutil.ToFloat64(m.requests.WithLabelValues("/x", "503", failed)), 0)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.seconds)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.EqualValues(t, 3, families[0].GetMetric()[0].GetHistogram().GetSampleCount())
}

// slowClient takes each write a minute late.
type slowClient struct{ *httptest.ResponseRecorder }

func (c slowClient) Write(b []byte) (int, error) {
	time.Sleep(time.Minute)
	return c.ResponseRecorder.Write(b)
}

// A client that takes its answer slowly makes no slow server.
func TestMetricsOfSlowClients(t *testing.T) {
	f := serve(t)
	synctest.Test(t, func(t *testing.T) {
		f.public.ServeHTTP(slowClient{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/api/scammers", nil))
	})
	families, err := f.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); family.GetName() == "registry_http_request_duration_seconds" && h.GetSampleCount() > 0 {
				require.Equal(t, "/api/scammers", m.GetLabel()[0].GetValue())
				require.Zero(t, h.GetSampleSum())
				return
			}
		}
	}
	t.Error("no request was counted")
}
