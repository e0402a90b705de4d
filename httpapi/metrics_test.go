package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// Requests are counted by route, status and kind of failure; no id, name or path becomes a label, and whatever is asked, no
// new series appears: a hostile client cannot grow the metrics.
func TestMetrics(t *testing.T) {
	f := serve(t)
	series := func() (n int, text string) {
		families, err := f.registry.Gather()
		require.NoError(t, err)
		for _, family := range families {
			n += len(family.Metric)
			text += family.String()
		}
		return n, text
	}
	f.get(t, "/proofs/secret-proofs") // its 302 is a series
	before, _ := series()

	f.get(t, "/api/scammers")
	f.get(t, "/api/scammers?search=adamowski")
	f.get(t, "/api/scammers", "If-None-Match", "*")
	f.get(t, "/api/scammers?limit=0")
	f.get(t, "/api/chat/avatar/123456789")
	f.get(t, "/secret/path")
	f.get(t, "/api/donate/status?id=secret-donation")
	f.get(t, "/api/ranges/abd")
	f.ask(t, http.MethodPost, "/api/check")
	f.ask(t, "METHOD", "/api/check")
	f.set(func(s *Readiness) { s.Ready = false })
	f.get(t, "/api/scammers")
	for _, c := range []struct {
		route, status, failed string
		want                  float64
	}{
		{"/api/scammers", "200", "", 2}, {"/api/scammers", "304", "", 1}, {"/api/scammers", "400", "", 1}, {"/api/scammers", "500", "", 0},
		{"/api/scammers", "503", "not-ready", 1}, {"/api/scammers", "503", "overloaded", 0},
		{"/api/chat/avatar/:chatUserId", "200", "", 1}, {"/proofs/:id", "302", "", 1}, {"/api/donate/status", "404", "", 1},
		{noRoute, "404", "", 1}, {noRoute, "405", "", 2},
	} {
		got := testutil.ToFloat64(f.public.metrics.requests.WithLabelValues(c.route, c.status, c.failed))
		require.InDelta(t, c.want, got, 0, "%+v", c)
	}

	after, text := series()
	require.Equal(t, before, after, "series")
	for _, private := range []string{"secret", "123456789", "adamowski", "abd"} {
		require.NotContains(t, text, private)
	}
	problems, err := testutil.GatherAndLint(f.registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// slowClient takes each write a minute late.
type slowClient struct{ *httptest.ResponseRecorder }

func (c slowClient) Write(b []byte) (int, error) {
	time.Sleep(time.Minute)
	return c.ResponseRecorder.Write(b)
}

// A client that takes its answer slowly makes no slow server, nor does one that waits for a sequence.
func TestMetricsOfSlowClients(t *testing.T) {
	f := serve(t)
	synctest.Test(t, func(t *testing.T) {
		f.public.ServeHTTP(slowClient{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/api/scammers", nil))
		waiting := httptest.NewRequest(http.MethodGet, "/api/check?id=1", nil)
		waiting.Header.Set(minSeqHeader, "1")
		f.public.ServeHTTP(httptest.NewRecorder(), waiting)
	})
	families, err := f.registry.Gather()
	require.NoError(t, err)
	counted := ""
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); family.GetName() == "registry_http_request_duration_seconds" && h.GetSampleCount() > 0 {
				counted += fmt.Sprint(m.GetLabel()[0].GetValue(), " ", h.GetSampleSum())
			}
		}
	}
	require.Equal(t, "/api/scammers 0", counted)
}

// Answers below 500 leave nothing in the log. A panic is a 500 whose detail is in the log alone, and the next request is
// answered.
func TestLog(t *testing.T) {
	f := serve(t)
	for _, target := range append(documented(), "/nope", "/api/scammers?limit=0", "/api/check?search=adam") {
		f.get(t, target)
	}
	require.Empty(t, f.log.String())

	f.public.health.Reader = failing{"secret detail"}
	for range 2 {
		a := f.wantError(t, http.StatusInternalServerError, "Błąd podczas pobierania danych.",
			http.MethodGet, "/api/scammers?search=adamowski&id=123456")
		require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	}
	log := f.log.String()
	for want, wanted := range map[string]bool{
		"secret detail": true, "route=/api/scammers": true, "health.go": true, // with the stack
		"adamowski": false, "123456": false, "127.0.0.1": false,
	} {
		require.Equal(t, wanted, strings.Contains(log, want), want)
	}
	f.get(t, "/openapi.yaml")
}
