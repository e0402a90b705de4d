package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// The last step of a rebuild, taken apart: while the old model stands still the new one is not shown before it
// stands beside it (promise 3), what comes meanwhile is neither lost nor applied twice, and the old
// one applies nothing of it.
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
		t.Errorf("joined at %d, behind the old model's %d", b.fresh.model.View().Sequence(), at.Sequence)
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
	r.server.log = discard()
	nc, err := nats.Connect(r.broker.ClientURL(), projector.ConnectOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	store, err := snapshots.Begin(snapshots.Config{Path: filepath.Join(t.TempDir(), "registry.db")})
	if err != nil {
		t.Fatal(err)
	}
	b := &rebuilding{server: r.server, nc: nc, options: httpapi.RebuildOptions{Yes: true}, unsaved: make(chan error, 1), began: time.Now(),
		old: &running{generation: r.live.now(), ended: make(chan struct{})}}
	b.begin(store)
	t.Cleanup(func() {
		if err := b.fresh.stop(); err != nil {
			t.Error(err)
		}
		if err := store.Discard(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// A rebuild that the memory limit has no room for is refused with both numbers, before anything is done; --yes
// does it all the same.
func TestRebuildMemory(t *testing.T) {
	t.Parallel()
	s := &stand{t: t, dir: t.TempDir(), env: []string{"GOMEMLIMIT=4MiB"}}
	s.start()
	s.fill(500, 22)
	before := s.projection()
	out, err := s.command(t.Context(), "rebuild")
	if err == nil || !strings.Contains(err.Error(), "the memory limit is 4 MiB") || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("with 4 MiB: %q %v", out, err)
	}
	if after := s.projection(); after.Digest != before.Digest || len(s.asides()) > 0 {
		t.Errorf("afterwards %s, before %s, replaced %q", after.Digest, before.Digest, s.asides())
	}
	if out, err := s.command(t.Context(), "rebuild", "--yes"); err != nil || len(s.asides()) != 1 {
		t.Errorf("with --yes: %q %v, replaced %q", out, err, s.asides())
	}
}

// Verify is right while some hundred view totals a second change.
func TestVerifyUnderLoad(t *testing.T) {
	s := newStand(t)
	s.fill(2000, 23)
	stop, cancel := context.WithCancel(t.Context())
	p, pool, done := s.publisher(), eventstest.Entries(200, 24), make(chan uint64, 1)
	go func() { done <- s.views(stop, p, pool) }()
	begun, from := time.Now(), s.projection().Checkpoint
	for range 3 {
		before := s.projection().Checkpoint
		until(t, func() bool { return s.projection().Checkpoint > before })
		if out, err := s.command(t.Context(), "verify"); err != nil {
			t.Errorf("verify: %v %s", err, out)
		}
	}
	t.Logf("%.0f events a second", float64(s.projection().Checkpoint-from)/time.Since(begun).Seconds())
	cancel()
	<-done
}
