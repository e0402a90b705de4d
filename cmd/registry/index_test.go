package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// TestIndexFailedMetric: an index that cannot be written is a metric of 1, none or a good one of 0.
func TestIndexFailedMetric(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := &readmodel.Indexer{Dir: filepath.Join(t.TempDir(), "index"), Slack: 1}
	bad := &readmodel.Indexer{Dir: filepath.Join(file, "index"), Slack: 1}
	model, r := readmodel.New(), readmodel.NewRenderer()
	for seq := uint64(1); seq <= 9; seq++ {
		e := events.Entry{List: events.Legit, EntryID: fmt.Sprint(seq), ChatID: "1", Name: "ktoś", Verified: true, ReportID: "r"}
		model.Apply([]readmodel.Record{r.Render(seq, e)}, seq)
	}
	runUntil(t, good, model, func() bool { return model.IndexSequence() == 9 })
	runUntil(t, bad, model, func() bool { return bad.Trouble() != "" })
	for want, indexer := range []*readmodel.Indexer{0: good, 1: bad} {
		indexFailed(t, want, indexer, model)
	}
	indexFailed(t, 0, nil, model)
}

func indexFailed(t *testing.T, want int, indexer *readmodel.Indexer, model *readmodel.Model) {
	t.Helper()
	l := newLive()
	l.show(newGeneration(generation{model: model, indexer: indexer}))
	text := fmt.Sprintf("# HELP registry_index_failed 1 while the text index cannot be written, or has been writing for longer than a disk should take: searches look at every entry it lacks.\n"+
		"# TYPE registry_index_failed gauge\nregistry_index_failed %d\n", want)
	if err := testutil.CollectAndCompare(newProjectionCollector(l), strings.NewReader(text), "registry_index_failed"); err != nil {
		t.Error(err)
	}
}

// runUntil runs an indexer until something is true.
func runUntil(t *testing.T, x *readmodel.Indexer, m *readmodel.Model, is func() bool) {
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
		t.Fatal("the indexer did not get there")
	}
}
