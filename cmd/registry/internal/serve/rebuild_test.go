package serve

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
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
	until(t, func() bool { return b.fresh.projector.Progress().CaughtUp }) // else the save of a join waits for that
	b.fresh.projector.PauseAt(0)
	ahead := eventstest.Publish(t, js, all[100:200]...)
	if _, err := b.old.model.Await(wait, ahead); err != nil {
		t.Fatal(err)
	}
	at := b.old.projector.PauseAt(0)
	last := eventstest.Publish(t, js, all[200:]...)

	impatient, stop := context.WithTimeout(t.Context(), 2*time.Second) // a busy machine needs that much for a join that does not wait
	defer stop()
	if err := b.join(impatient, at); err == nil {
		t.Errorf("joined at %d, before the old model's %d", b.fresh.model.View().Sequence(), at.Sequence)
	}
	b.fresh.projector.Resume()
	require.NoError(t, b.join(wait, at))
	if is, saved := b.fresh.model.View().Sequence(), b.fresh.store.Checkpoint().Sequence; is < at.Sequence || saved < at.Sequence {
		t.Errorf("joined at %d, saved up to %d; the old one stands at %d", is, saved, at.Sequence)
	}
	view, err := b.fresh.model.Await(wait, last)
	require.NoError(t, err)
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
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	store, err := snapshots.NewReplacement(snapshots.Config{Path: filepath.Join(t.TempDir(), "registry.db")})
	require.NoError(t, err)
	b := &rebuilding{server: r.server, options: admin.RebuildOptions{Yes: true}, unsaved: make(chan error, 1), began: time.Now(),
		old: &running{generation: r.live.current()}}
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

// A rebuild that is refused changes nothing: it erases nothing while it reads the stream, and the
// marker of a new history is the last thing that it publishes.
func TestRefusedRebuildChangesNothing(t *testing.T) {
	t.Parallel()
	r := project(t)
	js := eventstest.Connect(t, r.broker)
	b := r.rebuilding(t)
	for i, e := range eventstest.Entries(2, 1) {
		eventstest.Publish(t, js, eventstest.Listed(e, i), events.Event{ID: events.NewEventID(), Source: "/test", Type: events.TypeDelisted,
			Data: events.Delisting{Revision: 1, Time: eventstest.Start(), List: e.List, EntryID: e.EntryID}})
		until(t, func() bool { return b.fresh.projector.Progress().SubjectsNotErased == i+1 })
	}
	if n := state(t, js).Msgs; n != 4 || r.mayErase(b.fresh.generation) {
		t.Errorf("%d messages of 4 are left, and a model that is not shown may erase", n)
	}
	r.live.show(b.fresh.generation)
	until(t, func() bool { return state(t, js).Msgs == 2 })

	n := newNight(t, 1)
	entries := eventstest.Events(20, 1)
	eventstest.Publish(t, n.js, entries...)
	for i := range 5 {
		eventstest.Publish(t, n.js, events.Event{ID: events.NewEventID(), Source: "/test", Type: events.TypeDonationUpdated,
			Data: events.Donation{Revision: 1, DonationID: fmt.Sprint("d", i), Status: events.DonationPending, Amount: "1", Currency: "PLN",
				CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}})
	}
	until(t, func() bool { return n.server.live.current().store.Records()["donations"] == 5 })
	require.NoError(t, n.js.DeleteStream(t.Context(), events.DefaultStream))
	eventstest.Stream(t, n.js)
	last := eventstest.Publish(t, n.js, entries...)
	until(t, n.frozen)
	_, err := n.server.rebuild(t.Context(), admin.RebuildOptions{AcceptStream: true})
	if err == nil || !strings.Contains(err.Error(), "donations would go from 5 records to 0") {
		t.Error(err)
	}
	if is := state(t, n.js).LastSeq; is != last {
		t.Errorf("the stream ends at %d, and ended at %d before", is, last)
	}
}

func state(t *testing.T, js jetstream.JetStream) jetstream.StreamState {
	t.Helper()
	s, err := js.Stream(t.Context(), events.DefaultStream)
	require.NoError(t, err)
	return s.CachedInfo().State
}

// A rebuild from a stream that has lost subjects would lose what only the model still has.
func TestRebuildFromStreamWithLoss(t *testing.T) {
	t.Parallel()
	n := newNight(t, 1)
	all := eventstest.Events(50, 5)
	eventstest.Publish(t, n.js, all...)
	n.reached()
	s, err := n.js.Stream(t.Context(), events.DefaultStream)
	if err == nil {
		err = s.Purge(t.Context(), jetstream.WithPurgeSubject(all[49].Data.Subject().String()))
	}
	require.NoError(t, err)
	until(t, func() bool { p, _ := n.server.live.progress(); return p.SubjectsLost == 1 })
	_, err = n.server.rebuild(t.Context(), admin.RebuildOptions{})
	if err == nil || !strings.Contains(err.Error(), "the stream has lost 1 subjects") || !strings.Contains(err.Error(), "registry recover") {
		t.Error(err)
	}
	if _, err := n.server.rebuild(t.Context(), admin.RebuildOptions{Yes: true}); err != nil {
		t.Error(err)
	}
}
