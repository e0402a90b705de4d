package serve

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"example.org/registry/projector"
	"example.org/registry/readmodel"
)

// TestMetrics: /metrics has the metrics of all packages, each with a help text and a name by
// Prometheus's conventions.
func TestMetrics(t *testing.T) {
	s := newServer(t.Context(), Config{Logger: discard(), LostLines: noLosses})
	model := readmodel.New()
	s.live.showGeneration(newGeneration(generation{model: model, projector: projector.New(projector.Config{Model: model})}))
	public, operators, err := s.newHandlers(s.cfg.Public)
	require.NoError(t, err)
	defer public.Close()
	answer := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil)
	operators.ServeHTTP(answer, r)
	body := "\n" + answer.Body.String()
	problems, err := promlint.New(strings.NewReader(body[1:])).Lint()
	require.NoError(t, err)
	require.Empty(t, problems, "promlint")
	for _, name := range []string{
		"registry_lag_events", "registry_lag_seconds", "registry_checkpoint_sequence", "registry_saved_sequence", "registry_ready",
		"registry_rejected_events", "registry_ranked_failed", "registry_frozen", "registry_connected",
		"registry_http_requests_total", "registry_http_request_duration_seconds",
		"registry_kept_bodies",
		"registry_upstream_requests_total", "go_goroutines", "process_open_fds", "go_build_info",
	} {
		require.Contains(t, body, "\n# HELP "+name+" ")
	}
}
