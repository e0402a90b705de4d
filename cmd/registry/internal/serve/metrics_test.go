package serve

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/exact"
)

// What /metrics shows in the end, of all rooms together: each with a help text and a name by
// Prometheus's conventions.
func TestMetricsOfAllRooms(t *testing.T) {
	s := newServer(Config{Logger: discard(), LostLines: noLosses})
	model := readmodel.New()
	s.live.show(newGeneration(generation{model: model, projector: projector.New(projector.Config{Model: model})}))
	public, operators, err := s.handlers(s.cfg.Public)
	require.NoError(t, err)
	defer public.Close()
	answer := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil)
	operators.ServeHTTP(answer, r)
	body := "\n" + answer.Body.String()
	problems, err := promlint.New(strings.NewReader(body[1:])).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	for _, name := range []string{
		"registry_lag_events", "registry_lag_seconds", "registry_checkpoint_sequence", "registry_saved_sequence", "registry_ready",
		"registry_rejected_events", "registry_index_lag_events", "registry_index_failed", "registry_ranked_failed", "registry_frozen", "registry_connected",
		"registry_http_requests_total", "registry_http_request_duration_seconds",
		"registry_remembered_pages",
		"registry_upstream_requests_total", "go_goroutines", "process_open_fds", "go_build_info",
	} {
		if !strings.Contains(body, "\n# HELP "+name+" ") {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestIndexFailedMetric: an index that cannot be written is a metric of 1, none or a good one of 0.
func TestIndexFailedMetric(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	good := &exact.Engine{Dir: filepath.Join(t.TempDir(), "index")}
	bad := &exact.Engine{Dir: filepath.Join(file, "index")}
	model, r := readmodel.New(), readmodel.NewRenderer()
	for seq := uint64(1); seq <= 40; seq++ {
		e := events.Entry{Revision: 1, List: events.Legit, EntryID: fmt.Sprint(seq), ChatID: "1", Name: "ktoś", Verified: true, ReportID: "r"}
		model.Apply([]readmodel.Record{r.Render(seq, e)}, seq)
	}
	runUntil(t, good, model, func() bool { return good.Sequence() == 40 })
	runUntil(t, bad, model, func() bool { return bad.Problem() != "" })
	for want, engine := range []*exact.Engine{0: good, 1: bad} {
		indexFailed(t, want, engine, model)
	}
	indexFailed(t, 0, nil, model)
}

func indexFailed(t *testing.T, want int, engine *exact.Engine, model *readmodel.Model) {
	t.Helper()
	l := newLive()
	l.show(newGeneration(generation{model: model, exact: engine}))
	text := fmt.Sprintf("# HELP registry_index_failed 1 while the text index cannot be written, or has been writing for longer than a disk should take: searches look at every entry it lacks.\n"+
		"# TYPE registry_index_failed gauge\nregistry_index_failed %d\n", want)
	require.NoError(t, testutil.CollectAndCompare(newCollector(l, &snapshotStats{}, noLosses), strings.NewReader(text), "registry_index_failed"))
}

// runUntil runs an engine until something is true.
func runUntil(t *testing.T, x *exact.Engine, m *readmodel.Model, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.Run(ctx, m)
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() && ctx.Err() == nil {
		<-tick.C
	}
	cancel()
	<-done
	if !is() {
		t.Fatal("the engine did not get there")
	}
}
