package serve

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// The newest damaged store stays until this server has caught up and saved a good one; replaced ones
// do not wait for that. The store's free pages are erased after each save, once an interval.
func TestEndRemains(t *testing.T) {
	var log bytes.Buffer
	s := newServer(Config{DataDir: t.TempDir(), KeepSetAside: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	path := s.cfg.storePath()
	store, model, err := snapshots.Open(t.Context(), snapshots.Config{Path: path})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	s.live.show(newGeneration(generation{model: model, store: store}))
	for _, name := range []string{path + ".damaged-while-loading", path + ".replaced-20260101T000000Z"} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		require.NoError(t, os.Chtimes(name, time.Time{}, time.Now().Add(-2*time.Hour)))
	}
	r := &remains{server: s}
	r.end(t.Context())
	if _, err := os.Stat(path + ".damaged-while-loading"); err != nil || strings.Count(log.String(), "removed") != 1 {
		t.Errorf("without a good store: %v\n%s", err, &log)
	}
	if r.erased.IsZero() || s.live.erased.Load() == nil {
		t.Error("not erased")
	}

	js := eventstest.Connect(t, eventstest.Broker(t))
	eventstest.Stream(t, js)
	last := eventstest.Publish(t, js, eventstest.Events(30, 1)...)
	p := projector.New(projector.Config{JetStream: js, Stream: events.DefaultStream, Model: model, Store: store, Logger: discard()})
	running := start(newGeneration(generation{model: model, store: store, projector: p}))
	s.live.show(running.generation)
	_, err = model.Await(t.Context(), last)
	require.NoError(t, err)
	require.NoError(t, p.Flush(t.Context()))
	once := r.erased
	r.end(t.Context())
	if _, err := os.Stat(path + ".damaged-while-loading"); !os.IsNotExist(err) || strings.Count(log.String(), "removed") != 2 {
		t.Errorf("with a good store: %v\n%s", err, &log)
	}
	if r.erased != once {
		t.Error("erased again within the hour")
	}
	r.erased = r.erased.Add(-time.Hour)
	r.end(t.Context())
	again := r.erased
	if r.end(t.Context()); !again.After(once) || r.erased != again || r.saved != last {
		t.Errorf("erased at %v and %v, for %d", once, r.erased, r.saved)
	}
	r.erased = time.Time{}
	if r.end(t.Context()); !r.erased.IsZero() {
		t.Error("erased although nothing was saved")
	}
	require.NoError(t, running.stop(s))
	if v := model.View(); v.Sequence() != last || v.Digest() == (readmodel.Digest{}) {
		t.Error("the model")
	}
}
