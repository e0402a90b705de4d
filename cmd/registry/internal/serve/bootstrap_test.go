package serve

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/stream"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// starting is a stream with events, the bucket beside it, and a server that has nothing saved.
type starting struct {
	t      *testing.T
	js     jetstream.JetStream
	id     stream.Identity
	bucket *snapshots.Bucket
	log    bytes.Buffer
	skip   bool // --skip-snapshots
}

func newStarting(t *testing.T) *starting {
	js := eventstest.Connect(t, eventstest.Broker(t))
	made := eventstest.Stream(t, js)
	s := &starting{t: t, js: js, id: stream.IdentityOf(made.CachedInfo()), bucket: snapshots.NewBucket(js)}
	eventstest.Publish(t, js, eventstest.Events(50, 5)...)
	require.NoError(t, s.bucket.Ensure(t.Context(), 1))
	return s
}

// put puts a snapshot as a server at a checkpoint would.
func (s *starting) put(checkpoint uint64, id stream.Identity) snapshots.Object {
	s.t.Helper()
	store, model, err := snapshots.Open(s.t.Context(), filepath.Join(s.t.TempDir(), "registry.db"))
	require.NoError(s.t, err)
	defer store.Close()
	entry := eventstest.Entries(1, checkpoint)[0]
	line, err := events.Encode(events.StateEvent(entry))
	require.NoError(s.t, err)
	model.Apply([]readmodel.Record{readmodel.NewRenderer().Render(checkpoint, entry)}, checkpoint)
	require.NoError(s.t, store.Save(snapshots.Commit{
		States: map[events.Subject]snapshots.State{entry.Subject(): {Sequence: checkpoint, Line: line}},
		Meta:   snapshots.Meta{Identity: id, Sequence: checkpoint, Complete: true, Digest: model.Digest().String()},
	}))
	made, err := s.bucket.Put(s.t.Context(), store)
	require.NoError(s.t, err)
	return made
}

func newLoader(cfg Config) *loader {
	return &loader{cfg: cfg, live: newLive()}
}

// start lets a server begin in a data directory, and returns the checkpoint of the store that it
// finds: 0 if everything is to be replayed.
func (s *starting) start(dir string) (uint64, error) {
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	l := newLoader(Config{Flags: Flags{DataDir: dir, SkipSnapshots: s.skip, Stream: events.DefaultStream, SnapshotKeep: 1}, Logger: log})
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := l.loadStore(ctx, through(s.js)); err != nil {
		return 0, err
	}

	store := l.live.current().store
	return store.Meta().Sequence, store.Close()
}

func (s *starting) requireStart(dir string, checkpoint uint64) {
	s.t.Helper()
	got, err := s.start(dir)
	require.NoError(s.t, err)
	require.Equal(s.t, checkpoint, got, s.log.String())
}

// spoilNewest erases the chunks of the newest snapshot.
func (s *starting) spoilNewest() {
	s.t.Helper()
	objects, err := s.js.Stream(s.t.Context(), "OBJ_"+snapshots.BucketName)
	require.NoError(s.t, err)
	m, err := objects.GetLastMsgForSubject(s.t.Context(), "$O."+snapshots.BucketName+".C.>")
	require.NoError(s.t, err)
	require.NoError(s.t, objects.DeleteMsg(s.t.Context(), m.Sequence))
}

// TestBootstrap: an empty data directory starts from the newest readable snapshot of the stream's
// registry; the projector joins it with the stream.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  func(s *starting)
		want uint64
	}{
		"the newest":       {func(s *starting) { s.put(15, s.id) }, 15},
		"another registry": {func(s *starting) { s.put(40, stream.Identity{Stream: events.DefaultStream, Epoch: "other"}) }, 20},
		"a related epoch": {func(s *starting) {
			s.put(40, stream.Identity{Stream: events.DefaultStream, Epoch: "other", Follows: []string{s.id.Epoch}})
		}, 40},
		"an unreadable one": {func(s *starting) { s.put(40, s.id); s.spoilNewest() }, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStarting(t)
			s.put(10, s.id)
			s.put(20, s.id)
			c.put(s)
			s.requireStart(t.TempDir(), c.want)
		})
	}
}

// TestBootstrapRefused: where snapshots may have what the stream lacks, the server does not start, and
// says how it does.
func TestBootstrapRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(s *starting)
		says string
	}{
		"no readable snapshot": {(*starting).spoilNewest, "no snapshot of the stream REGISTRY can be used"},
		"the stream is missing": {func(s *starting) {
			require.NoError(s.t, s.js.DeleteStream(s.t.Context(), events.DefaultStream))
		}, "is missing or empty, and there are snapshots of it"},
		"the stream is empty": {func(s *starting) {
			require.NoError(s.t, s.js.DeleteStream(s.t.Context(), events.DefaultStream))
			eventstest.Stream(s.t, s.js)
		}, "is missing or empty, and there are snapshots of it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStarting(t)
			s.put(10, s.id)
			c.lose(s)
			_, err := s.start(t.TempDir())
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "--skip-snapshots")
			s.skip = true
			s.requireStart(t.TempDir(), 0)
		})
	}
}

// TestBootstrapInPlaceOfDamage: a damaged store is renamed, and treated as missing.
func TestBootstrapInPlaceOfDamage(t *testing.T) {
	t.Parallel()
	s := newStarting(t)
	s.put(20, s.id)
	dir := t.TempDir()
	s.requireStart(dir, 20)
	require.NoError(t, os.Truncate(StorePath(dir), 5000))
	s.requireStart(dir, 20)
	require.FileExists(t, StorePath(dir)+".damaged")
	require.Contains(t, s.log.String(), "the store is damaged")
}

// TestBootstrapWaits: without a store the server waits for a broker that does not answer, and says what
// it waits for; stopping ends it.
func TestBootstrapWaits(t *testing.T) {
	t.Parallel()
	away, err := nats.Connect("nats://127.0.0.1:1", projector.ConnectOptions()...)
	require.NoError(t, err)
	t.Cleanup(away.Close)
	for name, nc := range map[string]*nats.Conn{
		"the broker is away":       away,
		"the stream has no leader": eventstest.LonelyNode(t, "").Conn(),
	} {
		t.Run(name, func(t *testing.T) {
			js, err := jetstream.New(nc)
			require.NoError(t, err)
			l := newLoader(Config{Flags: Flags{DataDir: t.TempDir(), Stream: events.DefaultStream, SnapshotKeep: 1}, Logger: discard()})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- l.bootstrap(ctx, through(js)) }()
			const waiting = "nothing is saved here; waiting for the broker: "
			eventstest.Until(t, func() bool { return len(l.live.readiness().Reason) > len(waiting) })
			require.Contains(t, l.live.readiness().Reason, waiting)
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
		})
	}
}

// through returns a channel that has the connection which bootstrap waits for.
func through(js jetstream.JetStream) <-chan jetstream.JetStream {
	connected := make(chan jetstream.JetStream, 1)
	connected <- js
	return connected
}
