package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/eventstest/relay"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// patience bounds every wait of these tests. Nothing should need it.
const patience = 60 * time.Second

// system is a broker, a store and a projector between them, and each can be stopped and
// started again.
type system struct {
	revision int64 // of the last published event
	t        testing.TB
	dir      string // of the broker
	path     string // of the store
	addr     string // of the broker, the same over restarts
	broker   *broker.Broker
	js       jetstream.JetStream // of the test, not of the projector
	nc       *nats.Conn          // of the projector

	store *snapshots.Store
	model *readmodel.Model
	p     *Projector
	wrap  func(Store) Store // puts something between projector and store
	tune  func(*Config)

	beforeRun func(*Projector)
	log       *eventstest.Log
	stop      func() error
}

// newSystem starts a broker. The stream is made by the projector, or by the test before start.
func newSystem(t testing.TB) *system {
	t.Helper()
	if t, ok := t.(*testing.T); ok {
		t.Parallel() // most of what a test does is wait
	}
	return newSystemIn(t)
}

// newSystemIn is newSystem for a test that is parallel already.
func newSystemIn(t testing.TB) *system {
	t.Helper()
	s := &system{t: t, dir: t.TempDir(), path: filepath.Join(t.TempDir(), "registry.db"), log: &eventstest.Log{}}
	var err error
	if s.addr, err = eventstest.Address(); err != nil { // the broker may come back to it
		t.Fatal(err)
	}
	s.broker = eventstest.Broker(t, func(c *broker.Config) { c.StoreDir, c.Addr = s.dir, s.addr })
	s.js = s.connect()
	return s
}

// relay puts a relay between the broker and the projectors that are made from now on. The test's
// own connection goes past it.
func (s *system) relay() *relay.Relay {
	s.t.Helper()
	r, err := relay.StartNATS(s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(r.Close)
	s.addr = r.Addr()
	return r
}

func (s *system) connect() jetstream.JetStream {
	s.t.Helper()
	nc, err := nats.Connect("nats://"+s.addr, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectJitter(0, 0))
	require.NoError(s.t, err)
	s.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(s.t, err)
	return js
}

// open opens the store and makes a projector on it, with intervals that suit a test.
func (s *system) open() {
	s.t.Helper()
	store, model, err := snapshots.Open(context.Background(), snapshots.Config{Path: s.path})
	require.NoError(s.t, err)
	s.store, s.model = store, model
	opts := append(ConnectOptions(), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
	if s.nc, err = nats.Connect("nats://"+s.addr, opts...); err != nil {
		s.t.Fatal(err)
	}
	js, err := jetstream.New(s.nc)
	require.NoError(s.t, err)
	cfg := Config{
		JetStream: js, History: events.DefaultHistory, Erase: func() bool { return true }, Model: model, Store: store, Saved: store.Checkpoint(),
		Logger:    slog.New(slog.NewTextHandler(s.log, nil)),
		PollEvery: 20 * time.Millisecond, VerifyEvery: 40 * time.Millisecond, RetryEvery: 50 * time.Millisecond,
		StartupTimeout: 200 * time.Millisecond, SaveEvery: 10 * time.Millisecond,
	}
	if s.wrap != nil {
		cfg.Store = s.wrap(store)
	}
	cfg.Store = newWhole(s.t, cfg.Store, model)
	if s.tune != nil {
		s.tune(&cfg)
	}
	s.p = New(cfg)
	if s.beforeRun != nil {
		s.beforeRun(s.p)
	}
}

// whole is a Store that demands of every commit what makes a file that loads: that the digest is the
// one of all records that it then holds.
type whole struct {
	Store
	t      testing.TB
	states map[events.Subject]readmodel.Digest
}

func newWhole(t testing.TB, st Store, model *readmodel.Model) *whole {
	t.Helper()
	w := &whole{st, t, map[events.Subject]readmodel.Digest{}}
	for name := range model.Inventory().All() {
		k, err := events.ParseSubject(name)
		require.NoError(t, err)
		state, _, err := st.State(k)
		require.NoError(t, err)
		w.states[k] = readmodel.StateDigest(state.Data)
	}
	return w
}

func (w *whole) Save(c readmodel.Commit) error {
	for _, r := range c.Records {
		w.states[r.Subject] = r.Digest()
	}
	var sum readmodel.Digest
	for _, d := range w.states {
		sum.Add(d)
	}
	if sum != c.Digest {
		w.t.Errorf("saved at %d: the digest is not that of the records, and such a store does not load", c.Checkpoint.Sequence)
	}
	return w.Store.Save(c)
}

// start opens and runs, until mustStop or the test's end.
func (s *system) start() {
	s.t.Helper()
	s.open()
	p, nc, store, log := s.p, s.nc, s.store, s.log
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		err := <-ended
		nc.Close()
		return errors.Join(err, store.Close())
	})
	s.stop = stop
	s.t.Cleanup(func() {
		if err := stop(); err != nil {
			s.t.Errorf("Run: %v", err)
		}
		if s.t.Failed() {
			s.t.Log(log.String())
		}
	})
}

// mustStop stops the projector and closes its store.
func (s *system) mustStop() {
	s.t.Helper()
	require.NoError(s.t, s.stop())
}

// restartBroker stops the broker, lets between change its directory, and starts it on its port.
func (s *system) restartBroker(between func()) {
	s.t.Helper()
	s.away()
	if between != nil {
		between()
	}
	s.back()
}

// away stops the broker.
func (s *system) away() {
	s.t.Helper()
	s.broker.Shutdown()
	s.until("the test's connection is cut", func() bool { return !s.js.Conn().IsConnected() })
}

// back starts the broker on the port it had before.
func (s *system) back() {
	s.t.Helper()
	s.broker = eventstest.Broker(s.t, func(c *broker.Config) { c.StoreDir, c.Addr = s.dir, s.addr })
	s.until("the test's connection is back", func() bool { return s.js.Conn().IsConnected() })
}

// until waits until condition holds.
func (s *system) until(what string, condition func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			if s.p != nil {
				s.t.Logf("progress %+v", s.p.Progress())
			}
			s.t.Fatalf("waited for: %s", what)
		}
	}
}

// reach waits until the view and the store are at seq, and everything is well.
func (s *system) reach(seq uint64) *readmodel.View {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v, err := s.model.Await(ctx, seq)
	if err != nil {
		s.t.Fatalf("view at %d, not %d: progress %+v", s.model.View().Sequence(), seq, s.p.Progress())
	}
	s.until(fmt.Sprint("saved at ", seq), func() bool { p := s.p.Progress(); return p.Saved >= seq && p.CaughtUp })
	return v
}

// until a progress condition holds.
func (s *system) progress(what string, condition func(Progress) bool) {
	s.t.Helper()
	s.until(what, func() bool { return condition(s.p.Progress()) })
}

func (s *system) info() *jetstream.StreamInfo {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	st, err := s.js.Stream(ctx, events.DefaultStream)
	require.NoError(s.t, err)
	return st.CachedInfo()
}

// publish publishes events whose revisions grow.
func (s *system) publish(evs ...events.Event) uint64 {
	for i := range evs {
		s.revision++
		evs[i].Data = events.Revised(evs[i].Data, s.revision)
	}
	return eventstest.Publish(s.t, s.js, evs...)
}

// inspect replays the stream into an empty model and compares: promises 1 and 4. It stops the
// projector and opens its store again.
func (s *system) inspect() {
	s.t.Helper()
	twin := s.replay()
	want := twin.View()
	s.mustStop()
	s.sameTombstones(twin, s.model)
	if got := s.model.View().Digest(); got != want.Digest() {
		s.t.Errorf("digest of the model %s, of a replay %s", got, want.Digest())
	}
	store, loaded, err := snapshots.Open(context.Background(), snapshots.Config{Path: s.path})
	require.NoError(s.t, err)
	if loaded.View().Digest() != want.Digest() || loaded.View().Sequence() != s.model.View().Sequence() {
		s.t.Errorf("saved %d %s, replay %d %s", loaded.View().Sequence(), loaded.View().Digest(), want.Sequence(), want.Digest())
	}
	s.sameTombstones(twin, loaded)
	_ = store.Close() // a mark stands beside it while its pages are checked
	if found, err := filepath.Glob(s.path + ".*"); err != nil || len(found) > 0 {
		s.t.Errorf("beside the store: %v, %v", found, err)
	}
}

func (s *system) sameTombstones(want, got *readmodel.Model) {
	s.t.Helper()
	if a, b := want.Tombstones(), got.Tombstones(); !slices.Equal(a, b) {
		s.t.Errorf("tombstones of a replay %v\ngot %v", a, b)
	}
}

// replay is the naive projection: every message the stream has, one after the other.
func (s *system) replay() *readmodel.Model { return s.replayTo(math.MaxUint64) }

// replayTo is the naive projection of the messages up to last. A broker that does not answer, since
// the machine is busy, is asked again.
func (s *system) replayTo(last uint64) *readmodel.Model {
	s.t.Helper()
	m, renderer := readmodel.New(), readmodel.NewRenderer()
	stream := leader.Stream{JS: s.js, Name: events.DefaultStream}
	for seq := uint64(1); ; seq++ {
		var msg leader.Message
		var err error
		s.until("an answer of the broker", func() bool {
			msg, err = stream.NextMessage(context.Background(), seq, ">")
			return !errors.Is(err, natserr.ErrSilent)
		})
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && msg.Sequence > last {
			return m
		}
		require.NoError(s.t, err)
		seq = msg.Sequence
		var records []readmodel.Record
		if e, err := msg.Event(); err == nil {
			records = append(records, renderer.Render(seq, e.Data))
		}
		m.Apply(records, seq)
	}
}
