package serve

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/stream"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// noticed is a context that tells when somebody begins to wait for its end.
type noticed struct {
	context.Context
	once    sync.Once
	waiting chan struct{}
}

func (n *noticed) Done() <-chan struct{} {
	n.once.Do(func() { close(n.waiting) })
	return n.Context.Done()
}

// TestStartReason: until the projector runs, the server says what it waits for.
func TestStartReason(t *testing.T) {
	l := newLive()
	requireReason := func(want string) {
		t.Helper()
		require.Equal(t, want, l.readiness().Reason)
		require.EqualError(t, l.checkDatabase(t.Context()), want)
	}
	requireReason("loading the saved state")
	l.starting.Store(new("nothing is saved here"))
	requireReason("nothing is saved here")

	l.starting.Store(nil)
	store, model, err := snapshots.Open(t.Context(), filepath.Join(t.TempDir(), "registry.db"))
	require.NoError(t, err)
	defer store.Close()
	l.showGeneration(newGeneration(generation{model: model, store: store}))
	requireReason("waiting for the broker")
}

// TestAwaitOverGenerations: a reader that waits for a sequence waits on over a rebuild, since the model
// that was replaced grows no more.
func TestAwaitOverGenerations(t *testing.T) {
	l := newLive()
	got := make(chan uint64, 1)
	asked := &noticed{Context: t.Context(), waiting: make(chan struct{})}
	go func() {
		defer close(got)
		v, err := l.Await(asked, 5)
		if err != nil {
			t.Error(err)
			return
		}
		got <- v.Sequence()
	}()
	<-asked.waiting // on the first generation
	m := readmodel.New()
	l.showGeneration(newGeneration(generation{model: m}))
	l.showGeneration(newGeneration(generation{model: m}))
	m.Apply(nil, 7)
	require.EqualValues(t, 7, <-got, "sequence of the view")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Await(ctx, 8)
	require.ErrorIs(t, err, context.Canceled)
}

// projecting is a projection whose parts a test can break.
type projecting struct {
	*server
	broker *broker.Broker
	store  *snapshots.Store
	js     jetstream.JetStream
}

// project starts a projection as serve does, and waits until it has caught up.
func project(t *testing.T) projecting {
	t.Helper()
	flags := Flags{Stream: "REGISTRY", DataDir: t.TempDir(), NewStreamFlags: cli.NewStreamFlags{StreamReplicas: 1, StreamHistory: 5}}
	r := projecting{broker: eventstest.Broker(t), server: newServer(t.Context(), Config{Flags: flags, Logger: discard()})}
	nc, err := nats.Connect(r.broker.ClientURL(), projector.ConnectOptions()...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	r.live.stream.Store(&stream.Stream{JS: js, Name: "REGISTRY"})
	store, model, err := snapshots.Open(t.Context(), r.cfg.storePath())
	require.NoError(t, err)
	first := r.firstGeneration(model, store)
	first.start()
	r.live.showGeneration(first)
	r.store, r.js = store, js
	t.Cleanup(func() { // a test may have closed the store
		g := r.live.current()
		if err := g.stop(r.log); err != nil {
			t.Error(err)
		}
		_ = g.store.Close()
	})
	p := first.projector
	eventstest.Until(t, func() bool { now := p.Progress(); return now.CaughtUp && now.Connected })
	return r
}

// loseStream deletes the stream, once something of it is known: otherwise the projector makes another.
func (r projecting) loseStream(t *testing.T) {
	end := eventstest.Publish(t, r.js, eventstest.Listed(eventstest.Entries(1, 1)[0], 1))
	eventstest.Until(t, func() bool { p, _ := r.live.current().progress(); return p.Saved == end })
	require.NoError(t, r.js.DeleteStream(t.Context(), "REGISTRY"))
}

// TestCheckDatabase: the check asks the store and the stream, and does not go by what the projector
// last knew.
func TestCheckDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breakIt func(projecting)
		want    string // in the error
	}{
		"the stream is gone": {func(r projecting) { r.loseStream(t) }, ""},
		"the broker is gone": {func(r projecting) { r.broker.Shutdown() }, ""},
		"the store is gone":  {func(r projecting) { _ = r.store.Close() }, "store"},
		"the stream is another": {func(r projecting) {
			r.loseStream(t)
			eventstest.Stream(t, r.js)
			eventstest.Until(t, func() bool { p, _ := r.live.current().progress(); return p.Frozen != "" })
		}, "frozen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := project(t)
			require.NoError(t, r.live.checkDatabase(t.Context()), "while all is well")
			c.breakIt(r)
			require.ErrorContains(t, r.live.checkDatabase(t.Context()), c.want)
		})
	}
}
