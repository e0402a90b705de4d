package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.org/registry/httpapi/respond"
)

// Requests are counted by route and status, and no id, name or path becomes a label.
func TestMetrics(t *testing.T) {
	f := serve(t)
	f.get(t, "/api/scammers")
	f.get(t, "/api/scammers?search=adamowski")
	f.get(t, "/api/scammers", "If-None-Match", "*")
	f.get(t, "/api/scammers?limit=0")
	f.get(t, "/api/chat/avatar/123456789")
	f.get(t, "/proofs/secret-proofs")
	f.get(t, "/secret/path")
	f.get(t, "/api/donate/status?id=secret-donation")
	f.ask(t, http.MethodPost, "/api/check")
	for _, c := range []struct {
		route, status string
		want          float64
	}{
		{"/api/scammers", "200", 2}, {"/api/scammers", "304", 1}, {"/api/scammers", "400", 1}, {"/api/scammers", "500", 0},
		{"/api/chat/avatar/:chatUserId", "200", 1}, {"/proofs/:id", "302", 1}, {"/api/donate/status", "404", 1},
		{"none", "404", 1}, {"none", "405", 1},
	} {
		if got := testutil.ToFloat64(f.public.metrics.requests.WithLabelValues(c.route, c.status, "")); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.route, c.status, got, c.want)
		}
	}
	var text strings.Builder
	families, err := f.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		text.WriteString(family.String())
	}
	for _, private := range []string{"secret", "123456789", "adamowski"} {
		if strings.Contains(text.String(), private) {
			t.Errorf("the metrics show %q", private)
		}
	}
	for _, name := range []string{"registry_http_requests_in_flight", "registry_http_sequence_waiters", "registry_http_searches_queued"} {
		if n, err := testutil.GatherAndCount(f.registry, name); n != 1 || err != nil {
			t.Errorf("%s: %d %v", name, n, err)
		}
	}
	if problems, err := testutil.GatherAndLint(f.registry); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// Answers below 500 leave nothing in the log.
func TestQuietLog(t *testing.T) {
	f := serve(t)
	for _, target := range append(documented(), "/nope", "/api/scammers?limit=0", "/api/check?search=adam") {
		f.get(t, target)
	}
	if log := f.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// Whatever is asked, no new series appears: a hostile reader cannot grow the metrics.
func TestMetricsAreBounded(t *testing.T) {
	f := serve(t)
	count := func() (n int) {
		families, err := f.registry.Gather()
		require.NoError(t, err)
		for _, family := range families {
			n += len(family.Metric)
		}
		return n
	}
	before := count()
	for i := range 50 {
		f.get(t, fmt.Sprintf("/api/%d", i))
		f.get(t, fmt.Sprintf("/api/scammers?x%d=1&search=n%d", i, i))
		f.get(t, fmt.Sprintf("/api/chat/avatar/%d", i))
		f.get(t, fmt.Sprintf("/proofs/p%d", i))
		f.ask(t, http.MethodDelete, fmt.Sprintf("/api/check?id=%d", i))
		f.ask(t, fmt.Sprintf("METHOD%d", i), "/api/check")
	}
	if after := count(); after != before {
		t.Errorf("%d series, %d before", after, before)
	}
}

// A panic is a 500 whose detail is in the log alone, and the next request is answered.
func TestPanic(t *testing.T) {
	f := serve(t, func(c *Config) { c.Health.Reader = failing{"secret detail"} })
	for range 3 {
		a := f.wantError(t, http.StatusInternalServerError, "Błąd podczas pobierania danych.",
			http.MethodGet, "/api/scammers?search=adamowski&id=123456")
		if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Retry-After") != "" {
			t.Errorf("headers %v", a.header)
		}
	}
	log := f.log.String()
	for want, wanted := range map[string]bool{
		"secret detail": true, "route=/api/scammers": true, "health.go": true, // with the stack
		"adamowski": false, "123456": false, "127.0.0.1": false,
	} {
		if strings.Contains(log, want) != wanted {
			t.Errorf("log contains %q: %v", want, !wanted)
		}
	}
	if n := f.public.metrics.inFlight(); n != 0 {
		t.Errorf("%v requests in flight", n)
	}
	f.get(t, "/openapi.yaml")
}

// A panic after the first byte of a response cuts the connection, so that no client takes the part
// that it has for the whole.
func TestPanicInsideAResponse(t *testing.T) {
	f := serve(t)
	engine := gin.New()
	engine.GET("/", f.public.adapt("none", func(c *gin.Context) (respond.Response, error) {
		_, err := c.Writer.WriteString(`{"data":[`)
		require.NoError(t, err)
		c.Writer.Flush()
		panic("secret detail")
	}))
	server := httptest.NewServer(engine)
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, resp.Body.Close())
	if !errors.Is(err, io.ErrUnexpectedEOF) || string(body) != `{"data":[` {
		t.Errorf("%q, %v", body, err)
	}
	if log := f.log.String(); !strings.Contains(log, "secret detail") {
		t.Errorf("logged: %s", log)
	}
}

// A handler may cut the connection, and nothing is logged.
func TestAbort(t *testing.T) {
	f := serve(t, func(c *Config) { c.Health.Reader = failing{http.ErrAbortHandler} })
	if resp, err := f.client.Get("http://" + f.addr + "/api/scammers"); err == nil {
		_ = resp.Body.Close()
		t.Errorf("status %d, want the connection cut", resp.StatusCode)
	}
	if log := f.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}
