package serve

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// The last step of a rebuild, taken apart: while the old model stands still the new one is not
// shown before it stands beside it (promise 3), what comes meanwhile is neither lost nor applied
// twice, and the old one applies nothing of it.
func TestRebuildJoin(t *testing.T) {
	r := project(t)
	js, all := eventstest.Connect(t, r.broker), eventstest.Events(300, 21)
	b := r.rebuilding(t)
	beside := eventstest.Publish(t, js, all[:100]...)
	wait, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, m := range []*readmodel.Model{b.old.model, b.fresh.model} {
		if _, err := m.Await(wait, beside); err != nil {
			t.Fatal(err)
		}
	}
	b.fresh.projector.Hold(0)
	ahead := eventstest.Publish(t, js, all[100:200]...)
	if _, err := b.old.model.Await(wait, ahead); err != nil {
		t.Fatal(err)
	}
	at := b.old.projector.Hold(0)
	last := eventstest.Publish(t, js, all[200:]...)

	impatient, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	if err := b.join(impatient, at); err == nil {
		t.Errorf("joined at %d, before the old model's %d", b.fresh.model.View().Sequence(), at.Sequence)
	}
	b.fresh.projector.Release()
	if err := b.join(wait, at); err != nil {
		t.Fatal(err)
	}
	if is, saved := b.fresh.model.View().Sequence(), b.fresh.store.Checkpoint().Sequence; is < at.Sequence || saved < at.Sequence {
		t.Errorf("joined at %d, saved up to %d; the old one stands at %d", is, saved, at.Sequence)
	}
	view, err := b.fresh.model.Await(wait, last)
	if err != nil {
		t.Fatal(err)
	}
	twin, renderer := readmodel.New(), readmodel.NewRenderer()
	for i, e := range all {
		twin.Apply([]readmodel.Record{renderer.Render(uint64(i+1), e.Data)}, uint64(i+1))
	}
	if view.Digest() != twin.Digest() {
		t.Errorf("digest %s, a replay has %s", view.Digest(), twin.Digest())
	}
	if n := b.fresh.projector.Progress().Applied; n != uint64(len(all)) {
		t.Errorf("%d messages applied of %d", n, len(all))
	}
	if is := b.old.model.View().Sequence(); is != at.Sequence {
		t.Errorf("the old one went on to %d while it was held at %d", is, at.Sequence)
	}
}

// rebuilding is a rebuild beside the projection, whose new model follows the stream.
func (r projecting) rebuilding(t *testing.T) *rebuilding {
	t.Helper()
	nc, err := nats.Connect(r.broker.ClientURL(), projector.ConnectOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	store, err := snapshots.NewReplacement(snapshots.Config{Path: filepath.Join(t.TempDir(), "registry.db")})
	if err != nil {
		t.Fatal(err)
	}
	b := &rebuilding{server: r.server, options: admin.RebuildOptions{Yes: true}, unsaved: make(chan error, 1), began: time.Now(),
		old: &running{generation: r.live.now()}}
	b.begin(store)
	t.Cleanup(func() {
		if err := b.fresh.stop(r.server); err != nil {
			t.Error(err)
		}
		if err := store.Discard(); err != nil {
			t.Error(err)
		}
	})
	return b
}
