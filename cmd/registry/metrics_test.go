package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"example.org/registry/projector"
	"example.org/registry/readmodel"
)

func contains(body []byte, text string) bool { return bytes.Contains(body, []byte(text)) }

// The names and help texts keep to Prometheus's conventions, before and after the projector runs.
func TestMetricsAreWellNamed(t *testing.T) {
	const alone = 3 + 3 + 4 + 4 // entries by list, the index, remembered searches, what alerts go by
	l := newLive()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(newProjectionCollector(l)); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(reg); err != nil || n != alone {
		t.Errorf("%d metrics before the projector runs, want those of the entries, the index, the searches and the alerts: %v", n, err)
	}
	model := readmodel.New()
	l.show(newGeneration(generation{model: model, projector: projector.New(projector.Config{Model: model})})) // Progress may be asked before Run
	if n, err := testutil.GatherAndCount(reg); err != nil || n != alone-4+len(newProjectionCollector(l).numbers) {
		t.Errorf("%d metrics once there is a projector: %v", n, err)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// What /metrics shows in the end, of all rooms together: each with a help text and a name by
// Prometheus's conventions.
func TestMetricsOfAllRooms(t *testing.T) {
	s := &server{flags: &serveCmd{}, log: slog.New(slog.DiscardHandler), live: newLive()}
	s.snapshots = newSnapshotter(s.live, s.flags, s.log)
	model := readmodel.New()
	s.live.show(newGeneration(generation{model: model, projector: projector.New(projector.Config{Model: model})}))
	public, admin, err := s.handlers()
	if err != nil {
		t.Fatal(err)
	}
	defer public.Close()
	answer := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil)
	admin.ServeHTTP(answer, r)
	body := "\n" + answer.Body.String()
	problems, err := promlint.New(strings.NewReader(body[1:])).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	for _, name := range []string{
		"registry_lag_events", "registry_lag_seconds", "registry_checkpoint_sequence", "registry_saved_sequence", "registry_ready",
		"registry_rejected_events", "registry_index_lag_events", "registry_index_failed", "registry_frozen", "registry_connected",
		"registry_http_requests_total", "registry_http_request_duration_seconds", "registry_remembered_searches",
		"registry_remembered_searches_bytes", "registry_remembered_search_lookups_total", "registry_remembered_pages",
		"registry_upstream_requests_total", "go_goroutines", "process_open_fds", "go_build_info",
	} {
		if !strings.Contains(body, "\n# HELP "+name+" ") {
			t.Errorf("%s is missing", name)
		}
	}
}
