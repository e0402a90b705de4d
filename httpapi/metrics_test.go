package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
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
		if got := testutil.ToFloat64(f.public.metrics.requests.WithLabelValues(c.route, c.status)); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.route, c.status, got, c.want)
		}
	}
	var text strings.Builder
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
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
