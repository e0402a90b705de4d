package serve

import (
	"context"
	"path/filepath"
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
		_, err := m.Await(wait, beside)
		require.NoError(t, err)
	}
	eventstest.Until(t, func() bool { return b.fresh.projector.Progress().CaughtUp }) // else the save of a join waits for that
	b.fresh.projector.PauseAt(0)
	ahead := eventstest.Publish(t, js, all[100:200]...)
	_, err := b.old.model.Await(wait, ahead)
	require.NoError(t, err)
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

// A model that is not shown erases nothing: its rebuild may still be refused.
func TestRebuildErasesNothing(t *testing.T) {
	t.Parallel()
	r := project(t)
	js := eventstest.Connect(t, r.broker)
	b := r.rebuilding(t)
	for i, e := range eventstest.Entries(2, 1) {
		eventstest.Publish(t, js, eventstest.Listed(e, i), events.Event{ID: events.NewEventID(), Source: "/test", Type: events.TypeDelisted,
			Data: events.Delisting{Revision: 1 << 20, List: e.List, EntryID: e.EntryID}})
		eventstest.Until(t, func() bool { return b.fresh.projector.Progress().SubjectsNotErased == i+1 })
	}
	if n := state(t, js).Msgs; n != 4 || r.mayErase(b.fresh.generation) {
		t.Errorf("%d messages of 4 are left, and a model that is not shown may erase", n)
	}
	r.live.show(b.fresh.generation)
	eventstest.Until(t, func() bool { return state(t, js).Msgs == 2 })
}

func state(t *testing.T, js jetstream.JetStream) jetstream.StreamState {
	t.Helper()
	s, err := js.Stream(t.Context(), events.DefaultStream)
	require.NoError(t, err)
	return s.CachedInfo().State
}

// A rebuild keeps what the stream has lost: a listing, a removal, a view total and a donation. It
// counts them as unpublished, before and after.
func TestRebuildKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	r := project(t)
	publish := func(all ...events.Event) {
		seq := eventstest.Publish(t, r.js, all...)
		eventstest.Until(t, func() bool { p, _ := r.live.progress(); return p.Checkpoint >= seq && p.Saved >= seq })
	}
	all := eventstest.Events(50, 5)
	publish(all...)
	e := eventstest.Entries(1, 77)[0]
	lost := []events.Event{
		{ID: "lost-1", Source: "/test", Type: events.TypeDelisted, Data: events.Delisting{Revision: 1 << 30, List: e.List, EntryID: e.EntryID}},
		{ID: "lost-2", Source: "/test", Type: events.TypeViewsCounted, Data: events.Views{Revision: 1, List: e.List, EntryID: "lost", Views: 7}},
		{ID: "lost-3", Source: "/test", Type: events.TypeDonationUpdated, Data: events.Donation{Revision: 1, DonationID: "lost", Status: events.DonationPending,
			Amount: "1", Currency: "PLN", CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}},
		eventstest.Listed(eventstest.Entries(2, 78)[1], 9),
	}
	publish(lost...)
	s, err := r.js.Stream(t.Context(), events.DefaultStream)
	require.NoError(t, err)
	for _, e := range lost {
		require.NoError(t, s.Purge(t.Context(), jetstream.WithPurgeSubject(e.Data.Subject().String())))
	}
	digest := r.live.View().Digest()
	b := r.rebuilding(t)
	eventstest.Until(t, func() bool { return b.fresh.projector.Progress().CaughtUp })
	require.NoError(t, b.join(t.Context(), b.old.projector.PauseAt(0)))
	require.Equal(t, digest, b.fresh.model.View().Digest())
	require.Equal(t, len(lost), b.joined)
	require.Equal(t, len(lost), b.fresh.model.View().Lacking())
	for _, e := range lost {
		state, ok, err := b.fresh.store.State(e.Data.Subject())
		require.NoError(t, err)
		require.True(t, ok)
		require.Zero(t, state.Sequence)
		require.Equal(t, readmodel.StateDigest(e.Data), readmodel.StateDigest(state.Data))
	}
}
