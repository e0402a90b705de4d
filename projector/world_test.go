package projector

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// The worlds: .ci/run takes the first, .ci/nightly takes new ones.
var (
	worldFirst = flag.Int("world.first", 1, "first seed of TestWorld")
	worldCount = flag.Int("world.count", 3, "number of seeds of TestWorld")
	worldSteps = flag.Int("world.steps", 60, "steps of each world")
	worldLoud  = flag.Bool("world.loud", false, "print what servers log")
)

// world is a broker, a server of its stream, and the truth: of every subject, the greatest state
// that the broker has acknowledged.
type world struct {
	*testing.T
	rng *rand.Rand
	dir string
	log *slog.Logger

	broker *broker.Broker
	js     jetstream.JetStream
	images int // copies of the broker's directory

	server *server
	tune   func(*Config) // of servers; may be nil
	truth  map[events.Subject]events.Data
	serial int64
	did    []string
}

// mortalStore saves nothing once its process has died.
type mortalStore struct {
	*snapshots.Store
	isDead atomic.Bool
}

func (s *mortalStore) Save(c snapshots.Commit) error {
	if s.isDead.Load() {
		return errors.New("dead")
	}
	return s.Store.Save(c)
}

// server is a running projector with its store.
type server struct {
	*Projector
	store  *mortalStore
	cancel context.CancelFunc
	ended  chan error
}

func newWorld(t *testing.T, seed int) *world {
	w := newBroker(t, seed)
	w.start()
	return w
}

// newBroker is a world without a server.
func newBroker(t *testing.T, seed int) *world {
	w := &world{T: t, rng: rand.New(rand.NewPCG(uint64(seed), 1)), dir: t.TempDir(), truth: map[events.Subject]events.Data{}, log: slog.New(slog.DiscardHandler)}
	if *worldLoud {
		w.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	w.startBroker()
	t.Cleanup(func() {
		if w.server != nil {
			w.stop(w.server, true)
		}
		w.stopBroker()
	})
	return w
}

func (w *world) brokerDir() string { return filepath.Join(w.dir, "broker") }
func (w *world) storePath() string { return filepath.Join(w.dir, "registry.db") }

func (w *world) startBroker() {
	b, err := broker.Start(broker.Config{StoreDir: w.brokerDir(), Addr: "127.0.0.1:0", UnsafeNoSync: true})
	require.NoError(w, err)
	nc, err := b.Connect(append(ConnectOptions(), nats.ReconnectWait(20*time.Millisecond))...)
	require.NoError(w, err)
	w.broker = b
	w.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(patience))
	require.NoError(w, err)
	w.await("the broker is up", func() bool { return nc.IsConnected() })
}

func (w *world) stopBroker() {
	w.js.Conn().Close()
	w.broker.Shutdown()
}

func (w *world) stream() stream.Stream { return stream.Stream{JS: w.js, Name: events.DefaultStream} }

// start starts the server.
func (w *world) start() { w.server = w.open(w.storePath(), true) }

// open starts a server with a store.
func (w *world) open(path string, writes bool) *server {
	store, model := w.openStore(path)
	return w.run(New(w.config(store, model, writes)), store)
}

func (w *world) openStore(path string) (*mortalStore, *readmodel.Model) {
	store, model, err := snapshots.Open(w.Context(), path)
	require.NoError(w, err)
	w.Cleanup(func() { _ = store.Close() })
	return &mortalStore{Store: store}, model
}

func (w *world) config(store *mortalStore, model *readmodel.Model, writes bool) Config {
	cfg := Config{
		JetStream: w.js, Model: model, Store: store, Meta: store.Meta(), History: events.DefaultHistory, Logger: w.log,
		MayWrite: func() bool { return writes },
		pace: pace{
			saveEvery: 20 * time.Millisecond, pollEvery: 50 * time.Millisecond, stuckAfter: time.Second,
			retryEvery: 100 * time.Millisecond, restoreEvery: 50 * time.Millisecond,
		},
	}
	if w.tune != nil {
		w.tune(&cfg)
	}
	return cfg
}

func (w *world) run(p *Projector, store *mortalStore) *server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{Projector: p, store: store, cancel: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- p.Run(ctx) }()
	return s
}

// stop ends a server in order, or as a crash does: without saving. Stopping it again does nothing.
func (w *world) stop(s *server, crash bool) {
	if s.ended == nil {
		return
	}
	s.store.isDead.Store(crash)
	s.cancel()
	require.NoError(w, <-s.ended)
	require.NoError(w, s.store.Close())
	s.ended = nil
}

func (w *world) restart(crash bool) {
	w.stop(w.server, crash)
	w.start()
}

// patience bounds a wait, on a busy machine, too.
const patience = time.Minute

// await waits for a condition.
func (w *world) await(what string, is func() bool) {
	w.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not within %v: %s; %s", patience, what, w.describe())
		}
	}
}

func (w *world) describe() string {
	if w.server == nil {
		return ""
	}
	return fmt.Sprintf("%+v; did %v", w.server.Progress(), w.did)
}

func (w *world) awaitProgress(s *server, what string, is func(Progress) bool) {
	w.Helper()
	w.await(what, func() bool { return is(s.Progress()) })
}

// last returns the stream's last sequence.
func (w *world) last() uint64 {
	info, err := w.stream().Info(w.Context())
	if err != nil {
		return 1 << 60
	}
	return info.State.LastSeq
}

// settle waits until a server has read and saved everything.
func (w *world) settle(s *server) {
	w.Helper()
	w.awaitProgress(s, "the server has settled", func(p Progress) bool {
		return p.CaughtUp && p.Frozen == "" && !p.Reading && p.Checkpoint >= w.last() && p.Saved >= p.Checkpoint
	})
}

// nextData returns a new state of some subject. A quarter is late: older than others of the subject may
// be.
func (w *world) nextData() events.Data {
	id := fmt.Sprintf("e%d", w.rng.IntN(30))
	list := events.Lists()[w.rng.IntN(3)]
	w.serial++
	revision := 1_000_000 + 1000*w.serial
	if w.rng.IntN(4) == 0 {
		revision = max(1000, revision-1000*int64(w.rng.IntN(60))) + w.serial%1000
	}
	at := time.UnixMilli(revision).UTC()
	switch w.rng.IntN(8) {
	case 0, 1:
		return events.Delisting{List: list, EntryID: id, Revision: revision}
	case 2:
		return events.Views{List: list, EntryID: id, Revision: revision, Views: revision}
	case 3:
		return events.DonationRemoval{DonationID: "d" + id, Revision: revision}
	case 4:
		return events.Donation{DonationID: "d" + id, Status: events.DonationPending, Amount: "1", Currency: "BTC", CreatedAt: at, UpdatedAt: at, Revision: revision}
	}
	return entry(list, id, revision, w.rng.IntN(2) == 0)
}

func entry(list events.List, id string, revision int64, verified bool) events.Entry {
	return events.Entry{List: list, EntryID: id, ChatID: "1" + id, Name: fmt.Sprint("n", revision), ReportID: "r",
		ReportedAt: time.UnixMilli(revision).UTC(), Verified: verified, Revision: revision}
}

// publish publishes n states, some of them as messages that stop a bad reader.
func (w *world) publish(n int) {
	for range n {
		data := w.nextData()
		m := messageOf(w, data)
		poison := w.rng.IntN(25)
		switch poison {
		case 0:
			m.Data = []byte("{")
		case 1:
			m.Data, m.Header = nil, nats.Header{"Status": {"100"}}
		case 2:
			m.Data, m.Header = nil, nats.Header{"Status": {"404"}}
		}
		if _, err := w.js.PublishMsg(w.Context(), m); err != nil {
			return // there is no stream now
		}
		if poison > 2 {
			w.know(data)
		}
	}
}

// send publishes states.
func (w *world) send(all ...events.Data) {
	w.Helper()
	for _, data := range all {
		w.put(messageOf(w, data))
		w.know(data)
	}
}

func messageOf(t testing.TB, data events.Data) *nats.Msg {
	payload, err := events.Encode(events.StateEvent(data))
	require.NoError(t, err)
	return &nats.Msg{Subject: data.Subject().String(), Data: payload}
}

func (w *world) know(data events.Data) {
	if is := w.truth[data.Subject()]; is == nil || events.Compare(data, is) > 0 {
		w.truth[data.Subject()] = data
	}
}

func (w *world) digest() string {
	var all readmodel.Digest
	for _, data := range w.truth {
		all.Add(readmodel.StateDigest(data))
	}
	return all.String()
}

// requireTruth fails unless a server knows exactly the truth.
func (w *world) requireTruth(s *server, when string) {
	w.Helper()
	if got := s.cfg.Model.View().Digest().String(); got != w.digest() {
		w.Fatalf("%s: the server's digest is %s, want %s: %s; %s", when, got, w.digest(), w.differences(s), w.describe())
	}
}

func (w *world) differences(s *server) (all []string) {
	has := map[events.Subject]events.Data{}
	_ = s.store.Each(nil, func(state snapshots.State) error {
		e, err := events.Decode(state.Line)
		if err == nil {
			has[e.Data.Subject()] = e.Data
		}
		return err
	})
	for k, data := range w.truth {
		if is := has[k]; is == nil || events.Compare(is, data) != 0 {
			all = append(all, fmt.Sprintf("%s: %v, want %v", k, is, data))
		}
	}
	return all
}

// export returns a server's states as the command export does.
func (w *world) export(s *server) *bytes.Buffer {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	require.NoError(w, s.Flush(ctx))
	var all bytes.Buffer
	_, err := snapshots.Write(w.Context(), s.store.Store, &all, nil)
	require.NoError(w, err)
	return &all
}

// recover is what an operator does, and waits until a server has nothing that the stream lacks.
func (w *world) recover(s *server) {
	w.Helper()
	recovery := Recovery{JetStream: w.js, Stream: events.DefaultStream, Create: true, History: events.DefaultHistory}
	require.NoError(w, recovery.Add(w.export(s)))
	_, err := recovery.Run(w.Context())
	require.NoError(w, err)
	w.awaitRecovered(s)
}

func (w *world) awaitRecovered(s *server) {
	w.Helper()
	info, err := w.stream().Info(w.Context())
	require.NoError(w, err)
	epoch := stream.IdentityOf(info).Epoch
	w.awaitProgress(s, "the server goes on after a recovery", func(p Progress) bool {
		return p.Epoch == epoch && p.CaughtUp && p.Frozen == "" && !p.Reading && !p.Rewound && p.Unpublished == 0 && p.Checkpoint >= w.last()
	})
}

func (w *world) deleteStream() {
	w.Helper()
	require.NoError(w, w.js.DeleteStream(w.Context(), events.DefaultStream))
}

func (w *world) purge(subject string) {
	w.Helper()
	s, err := w.js.Stream(w.Context(), events.DefaultStream)
	require.NoError(w, err)
	require.NoError(w, s.Purge(w.Context(), jetstream.WithPurgeSubject(subject)))
}

// takeImage copies the broker's directory, as a backup of a machine does. The server must be stopped.
func (w *world) takeImage() {
	w.stopBroker()
	w.images++
	require.NoError(w, os.CopyFS(w.imageDir(), os.DirFS(w.brokerDir())))
	w.startBroker()
}

func (w *world) imageDir() string { return filepath.Join(w.dir, fmt.Sprint("image", w.images)) }

// restoreImage puts the newest image in the place of the broker's directory. The server must be
// stopped.
func (w *world) restoreImage() {
	w.stopBroker()
	require.NoError(w, os.RemoveAll(w.brokerDir()))
	require.NoError(w, os.CopyFS(w.brokerDir(), os.DirFS(w.imageDir())))
	w.startBroker()
}

func (w *world) knowsMore() bool {
	p := w.server.Progress()
	return p.Unpublished > 0 || p.Rewound
}

// streamLacks reports whether the stream lacks a subject, as the command verify does: a server does not notice
// that while as many other subjects hold only broken events.
func (w *world) streamLacks() bool {
	for k := range w.truth {
		if _, err := w.stream().LastMessage(w.Context(), k.String()); errors.Is(err, jetstream.ErrMsgNotFound) {
			return true
		}
	}
	return false
}

// rebuild replaces the server by one that has read the stream alone.
func (w *world) rebuild() error {
	if err := w.server.CheckRebuild(); err != nil {
		return err
	}
	path := w.storePath() + ".rebuilding"
	store, model := w.openStore(path)
	old := w.server
	fresh := w.run(old.NewBeside(model, store, func() bool { return false }), store)
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	if err := old.Replace(ctx, fresh.Projector, func() error { return store.Replace(old.store.Store) }); err != nil {
		w.stop(fresh, true)
		require.NoError(w, os.Remove(path))
		return err
	}
	w.stop(old, true)
	w.server = fresh
	return nil
}

// step does something that happens to a registry.
func (w *world) step() {
	steps := []struct {
		name string
		do   func()
	}{
		{"publish", func() { w.publish(1 + w.rng.IntN(40)) }},
		{"publish", func() { w.publish(1 + w.rng.IntN(40)) }},
		{"publish", func() { w.publish(1 + w.rng.IntN(40)) }},
		{"publish", func() { w.publish(1 + w.rng.IntN(40)) }},
		{"crash", func() { w.restart(true) }},
		{"restart", func() { w.restart(false) }},
		{"restart the broker", w.stepBrokerRestarts},
		{"take an image", func() {
			w.settle(w.server)
			w.stop(w.server, false)
			w.takeImage()
			w.start()
		}},
		{"restore the image", w.stepImageRestored},
		{"delete the stream", w.stepStreamDeleted},
		{"purge a list", w.stepListPurged},
		{"snapshot", w.stepSnapshot},
		{"new disk", w.stepNewDisk},
		{"rebuild", w.stepRebuild},
	}
	step := steps[w.rng.IntN(len(steps))]
	w.did = append(w.did, step.name)
	step.do()
}

func (w *world) stepBrokerRestarts() {
	w.stop(w.server, w.rng.IntN(2) == 0)
	w.stopBroker()
	w.startBroker()
	w.start()
}

func (w *world) stepImageRestored() {
	if w.images == 0 {
		return
	}
	w.settle(w.server)
	w.stop(w.server, false)
	w.restoreImage()
	if w.rng.IntN(2) == 0 {
		w.publish(1 + w.rng.IntN(40)) // it may grow beyond the checkpoint before the server looks
	}
	w.start()
	if w.rng.IntN(2) == 0 {
		w.settle(w.server)
		w.requireTruth(w.server, "after the broker's image was restored")
		w.recover(w.server)
	}
}

func (w *world) stepStreamDeleted() {
	w.settle(w.server)
	if len(w.truth) == 0 {
		return
	}
	w.deleteStream()
	w.awaitProgress(w.server, "frozen", func(p Progress) bool { return p.Frozen == FrozenMissing })
	w.requireTruth(w.server, "frozen")
	w.recover(w.server)
}

func (w *world) stepListPurged() {
	w.settle(w.server)
	w.purge("registry.scammers.*")
	w.restart(false)
	w.settle(w.server)
	w.await("the loss is noticed", func() bool {
		info, err := w.stream().Info(w.Context())
		p := w.server.Progress()
		return err == nil && p.CaughtUp && !p.Reading && int(info.State.NumSubjects) >= w.server.cfg.Model.View().NumSubjects()-p.Unpublished
	})
	w.settle(w.server)
}

func (w *world) stepSnapshot() {
	w.settle(w.server)
	if len(w.truth) == 0 {
		return
	}
	w.requireTruth(w.server, "before a snapshot")
	bucket := snapshots.NewBucket(w.js)
	require.NoError(w, bucket.Ensure(w.Context(), 1))
	made, err := bucket.Put(w.Context(), w.server.store.Store)
	require.NoError(w, err)
	require.Equal(w, w.digest(), made.Header.Digest, "digest of the snapshot")
	_, err = bucket.Prune(w.Context(), w.server.Progress().Identity, 3)
	require.NoError(w, err)
}

func (w *world) stepNewDisk() {
	w.settle(w.server)
	if w.knowsMore() || w.streamLacks() {
		w.recover(w.server)
	}
	w.stop(w.server, false)
	require.NoError(w, os.Remove(w.storePath()))
	if len(w.truth) > 0 {
		info, err := w.stream().Info(w.Context())
		require.NoError(w, err)
		bucket := snapshots.NewBucket(w.js)
		all, err := bucket.List(w.Context())
		require.NoError(w, err)
		err = bucket.Bootstrap(w.Context(), all, stream.IdentityOf(info), w.storePath(), w.log)
		require.NoError(w, err)
	}
	w.start()
	w.settle(w.server)
	w.requireTruth(w.server, "on a new disk")
}

func (w *world) stepRebuild() {
	w.settle(w.server)
	if w.knowsMore() {
		require.ErrorIs(w, w.rebuild(), ErrKnowsMore)
		return
	}
	w.publish(20)
	err := w.rebuild()
	if errors.Is(err, ErrKnowsMore) {
		w.recover(w.server)
		return
	}
	require.NoError(w, err, w.describe())
	w.restart(false) // with the right to write
}

// TestWorld: whatever happens to a registry, in any order, its server knows exactly the greatest of
// all states that were acknowledged, and a recovery brings the stream to the same.
func TestWorld(t *testing.T) {
	count := *worldCount
	if testing.Short() {
		count = 1
	}
	for seed := *worldFirst; seed < *worldFirst+count; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range *worldSteps {
				w.step()
			}
			w.settle(w.server)
			w.requireTruth(w.server, "at the end")
			w.recover(w.server)
			w.requireTruth(w.server, "after the last recovery")
			w.await("the feed is named after the epoch", func() bool { return w.server.Progress().Epoch == w.server.cfg.Model.View().Epoch() })
			w.requireWholeStream()
		})
	}
}

// requireWholeStream fails unless the last message of each subject is its latest state, and nothing
// stands before a removal.
func (w *world) requireWholeStream() {
	w.Helper()
	var wrong []string
	w.await("the stream is whole", func() bool { wrong = w.wrongSubjects(); return len(wrong) == 0 })
	require.Empty(w, wrong)
}

func (w *world) wrongSubjects() (wrong []string) {
	s, err := w.js.Stream(w.Context(), events.DefaultStream)
	require.NoError(w, err)
	info, err := s.Info(w.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(w, err)
	for k, data := range w.truth {
		m, err := w.stream().LastMessage(w.Context(), k.String())
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", k, err))
			continue
		}
		e, err := m.Event()
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s: its last message is %v", k, err))
		case events.Compare(e.Data, data) != 0:
			wrong = append(wrong, fmt.Sprintf("%s: its last message is another state", k))
		case e.Type.Removes() && info.State.Subjects[k.String()] > 1:
			wrong = append(wrong, fmt.Sprintf("%s: messages stand before its removal", k))
		}
	}
	return wrong
}
