package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/projector"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

// starting is a stream with events, the bucket beside it, and a server that has nothing saved.
type starting struct {
	t      *testing.T
	js     jetstream.JetStream
	stream jetstream.Stream
	bucket *bucket.Bucket
	log    bytes.Buffer

	acceptLoss string // of the servers
}

func newStarting(t *testing.T) *starting {
	js := eventstest.Connect(t, eventstest.Broker(t))
	s := &starting{t: t, js: js, stream: eventstest.Stream(t, js), bucket: bucket.New(js, bucket.Config{})}
	eventstest.Publish(t, js, eventstest.Events(50, 5)...)
	require.NoError(t, s.bucket.Create(t.Context()))
	return s
}

// put puts a snapshot as a server that stands at sequence seq would, after change has changed where
// it says that it stands.
func (s *starting) put(seq uint64, change func(*readmodel.Checkpoint)) bucket.Object {
	s.t.Helper()
	epoch := lineage.Of(s.stream.CachedInfo()).StreamEpoch
	at := readmodel.Checkpoint{Sequence: seq, Complete: true, Histories: []string{epoch},
		StreamIdentity: readmodel.StreamIdentity{Stream: events.DefaultStream, StreamEpoch: epoch}}
	if m, err := s.stream.GetMsg(s.t.Context(), seq); err == nil {
		at.Positions = []readmodel.Position{{Sequence: seq, Time: m.Time}}
	}
	if change != nil {
		change(&at)
	}
	store, model, err := snapshots.Open(s.t.Context(), snapshots.Config{Path: filepath.Join(s.t.TempDir(), "registry.db")})
	require.NoError(s.t, err)
	defer store.Close()
	record := readmodel.NewRenderer().Render(seq, eventstest.Entries(1, seq)[0])
	model.Apply([]readmodel.Record{record}, seq)
	require.NoError(s.t, store.Save(readmodel.Commit{Records: []readmodel.Record{record}, Checkpoint: at, Digest: model.Digest()}))
	a, err := store.Archive(s.t.Context(), snapshots.ArchiveConfig{TempDir: s.t.TempDir()})
	require.NoError(s.t, err)
	defer a.Close()
	item, err := s.bucket.Put(s.t.Context(), a.Manifest, a.Reader())
	require.NoError(s.t, err)
	return item
}

// start lets a server begin in a new data directory and returns the checkpoint of the store that it
// finds; 0 when everything is to be replayed.
func (s *starting) start() uint64 {
	s.t.Helper()
	return s.startIn(s.t.TempDir())
}

func (s *starting) startIn(dir string) uint64 {
	s.t.Helper()
	at, err := s.try(dir)
	require.NoError(s.t, err)
	return at
}

// try is startIn for a server that may refuse to start.
func (s *starting) try(dir string) (uint64, error) {
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	cfg := Config{DataDir: dir, AcceptLoss: s.acceptLoss, Stream: events.DefaultStream, SnapshotKeep: 1, Logger: log}
	srv := newServer(cfg)
	srv.snapshots.open(s.js)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	store, _, err := srv.load(ctx, through(s.js))
	if err != nil {
		return 0, err
	}
	at := store.Checkpoint().Sequence
	return at, store.Close()
}

// An empty data directory starts from the newest good snapshot of the stream's history, wherever that
// stands: the projector joins it with the stream, so it is not complete yet. What is of another
// history or damaged is passed over, with the reason logged.
func TestBootstrapPassesOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  func(s *starting)
		at   uint64
		says string
	}{
		"another history": {func(s *starting) { s.put(40, func(at *readmodel.Checkpoint) { at.Histories = []string{"other"} }) }, 20, "another history"},
		"another stream":  {func(s *starting) { s.put(40, func(at *readmodel.Checkpoint) { at.Stream = "OTHER" }) }, 20, "another history"},
		"future":          {func(s *starting) { s.put(4000, nil) }, 4000, ""},
		"another message": {func(s *starting) {
			s.put(40, func(at *readmodel.Checkpoint) { at.Positions[0].Time = time.Unix(1, 0) })
		}, 40, ""},
		"an older one":   {func(s *starting) { s.put(15, nil) }, 15, ""},
		"chunks missing": {func(s *starting) { s.put(40, nil); s.spoilChunks(nil) }, 20, "chunk 1"},
		"chunks changed": {func(s *starting) { s.put(40, nil); s.spoilChunks([]byte("garbage")) }, 20, "not a snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStarting(t)
			s.put(10, nil)
			s.put(20, nil)
			c.put(s)
			require.Equal(t, c.at, s.start())
			require.Contains(t, s.log.String(), c.says)
		})
	}
}

// spoilChunks erases the chunks of the last object, and puts another in their place if there is one.
func (s *starting) spoilChunks(other []byte) {
	s.t.Helper()
	objects, err := s.js.Stream(s.t.Context(), "OBJ_"+bucket.Name)
	require.NoError(s.t, err)
	m, err := objects.GetLastMsgForSubject(s.t.Context(), "$O."+bucket.Name+".C.>")
	require.NoError(s.t, err)
	require.NoError(s.t, objects.DeleteMsg(s.t.Context(), m.Sequence))
	if other == nil {
		return
	}
	_, err = s.js.PublishMsg(s.t.Context(), &nats.Msg{Subject: m.Subject, Data: other})
	require.NoError(s.t, err)
}

// foreign puts somebody else's object into the bucket.
func (s *starting) foreign() {
	s.t.Helper()
	store, err := s.js.ObjectStore(s.t.Context(), bucket.Name)
	if err == nil {
		_, err = store.PutString(s.t.Context(), "notes", "somebody's")
	}
	require.NoError(s.t, err)
}

// Where there are snapshots of the stream and none can be read, they may have what the stream lacks:
// the server does not start, unless an operator names the stream.
func TestBootstrapUnreadable(t *testing.T) {
	t.Parallel()
	s := newStarting(t)
	s.put(10, nil)
	s.spoilChunks(nil)
	s.acceptLoss = "another"
	s.refuses("no snapshot of the stream REGISTRY can be used")
	s.acceptLoss = s.epoch()
	require.Zero(t, s.start())
	require.Contains(t, s.log.String(), "as --accept-loss says")
}

func (s *starting) epoch() string { return lineage.Of(s.stream.CachedInfo()).StreamEpoch }

// refuses lets a server begin that has to say why it does not start, and with which flag it does.
func (s *starting) refuses(why string, ways ...string) {
	s.t.Helper()
	_, err := s.try(s.t.TempDir())
	for _, part := range append(ways, why, "--accept-loss ") {
		if err == nil || !strings.Contains(err.Error(), part) {
			s.t.Errorf("lacks %q: %v", part, err)
		}
	}
}

// A damaged store is no store: the server starts from the newest good snapshot, as often as that
// happens, and everything that was set aside is still there.
func TestBootstrapInPlaceOfDamage(t *testing.T) {
	t.Parallel()
	s := newStarting(t)
	s.put(20, nil)
	dir := t.TempDir()
	path := StorePath(dir)
	for n := range 3 {
		if n > 0 {
			require.NoError(t, os.Truncate(path, 5000))
		}
		if at := s.startIn(dir); at != 20 {
			t.Errorf("started at %d, not 20: %s", at, s.log.String())
		}
		if aside, err := filepath.Glob(path + ".damaged-*"); err != nil || len(aside) != n {
			t.Errorf("after %d damaged stores: %q, %v", n, aside, err)
		}
	}
}

// A save that meets damage has the store rebuilt from the stream, while the model is served. What
// is saved then is what a restart loads. Nobody is asked, though the memory is too small for two models.
func TestRemake(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1)) // of the whole process, so it runs alone
	r := project(t)
	path := r.cfg.storePath()
	drained := make(chan struct{})
	followed := make(chan error, 1)
	damaged, empty, err := snapshots.Open(t.Context(), snapshots.Config{Path: path})
	require.NoError(t, err)
	current := start(r.newGeneration(damaged, r.watched(damaged), empty, damaged.Checkpoint(), 0))
	r.live.show(current.generation)
	go func() { followed <- r.follow(drained, current) }()
	publish := func(n int, seed uint64) uint64 {
		seq := eventstest.Publish(t, r.js, eventstest.Events(n, seed)...)
		eventstest.Until(t, func() bool { return r.live.current().store.Checkpoint().Sequence == seq })
		return seq
	}
	publish(300, 1)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	clear(file[2*os.Getpagesize():]) // the pages of a file that is open, in place
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(file, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	seq := publish(50, 2)
	if r.live.current().store == damaged {
		t.Error("saved without another store")
	}
	digest := r.live.View().Digest()
	close(drained)
	require.NoError(t, errors.Join(<-followed, r.live.current().store.Close()))
	store, model, err := snapshots.Open(t.Context(), snapshots.Config{Path: path})
	require.NoError(t, err)
	defer store.Close()
	if store.Checkpoint().Sequence != seq || model.Digest() != digest {
		t.Errorf("a restart loads %d with %s, not %d with %s", store.Checkpoint().Sequence, model.Digest(), seq, digest)
	}
}

// Without a bucket there is nothing to start from, and without a stream that has snapshots the server
// does not start: the message names the way back, and what it takes.
func TestBootstrapWithNothing(t *testing.T) {
	t.Parallel()
	s := newStarting(t)
	s.foreign()
	require.Zero(t, s.start())
	name := s.put(20, nil).Name
	require.NoError(t, s.js.DeleteStream(t.Context(), events.DefaultStream))
	ways := []string{"registry recover " + name, "--tombstones FILE", "--without-tombstones"}
	s.refuses("is missing, and there are snapshots of it", append(ways, "--create-stream", "--accept-loss "+s.epoch())...)
	s.acceptLoss = s.epoch()
	require.Zero(t, s.start())
	stream, err := s.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: events.DefaultStream, Subjects: []string{events.StreamSubjects}, Metadata: map[string]string{events.MetadataEpoch: "another"}})
	require.NoError(t, err)
	s.stream = stream
	s.refuses("is empty, and there are snapshots of it", append(ways, "--accept-loss another")...)
	s.acceptLoss = "another"
	require.Zero(t, s.start())
	require.Contains(t, s.log.String(), "serving an empty one, as --accept-loss says")
	s.acceptLoss = ""
	require.NoError(t, s.js.DeleteObjectStore(t.Context(), bucket.Name))
	require.Zero(t, s.start())
}

// While the broker is away it is waited for, and its absence is why nothing is answered; stopping
// ends it.
func TestBootstrapWithoutBroker(t *testing.T) {
	t.Parallel()
	nc, err := nats.Connect("nats://127.0.0.1:1", projector.ConnectOptions()...)
	require.NoError(t, err)
	defer nc.Close()
	waits(t, nc, "cannot be reached", "")
}

// Without its snapshots nothing tells whether a stream has lost anything: a server waits until they
// can be listed.
func TestBootstrapWithoutSnapshots(t *testing.T) {
	t.Parallel()
	denied := &natsserver.SubjectPermission{Deny: []string{"$JS.API.STREAM.*.OBJ_" + bucket.Name}}
	srv := eventstest.Server(t, &natsserver.Options{JetStream: true, StoreDir: t.TempDir(), Users: []*natsserver.User{
		{Username: "all", Password: "all"}, {Username: "blind", Password: "blind", Permissions: &natsserver.Permissions{Publish: denied}}}})
	if !srv.ReadyForConnections(patience) {
		t.Fatal("the broker does not start")
	}
	connect := func(user string) *nats.Conn {
		nc, err := nats.Connect(srv.ClientURL(), nats.UserInfo(user, user))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	js, err := jetstream.New(connect("all"))
	require.NoError(t, err)
	eventstest.Stream(t, js)
	waits(t, connect("blind"), "does not answer about the stream or its snapshots", "--accept-loss")
}

// A node that knows no leader of the stream is a broker that is away: what it knows may be old.
func TestBootstrapWithoutLeader(t *testing.T) {
	t.Parallel()
	waits(t, eventstest.LonelyNode(t, "").Conn(), "does not answer about the stream", "leader")
}

// through returns a channel that has the connection which bootstrap waits for.
func through(js jetstream.JetStream) <-chan jetstream.JetStream {
	connected := make(chan jetstream.JetStream, 1)
	connected <- js
	return connected
}

// waits says whether a server with nothing saved waits for the broker, with why in the log, until
// it is stopped, and part of the reason in its readiness.
func waits(t *testing.T, nc *nats.Conn, why, part string) {
	t.Helper()
	said := make(logLines, 1)
	srv := newServer(Config{DataDir: t.TempDir(), Stream: events.DefaultStream, SnapshotKeep: 1, Logger: slog.New(slog.NewTextHandler(said, nil))})
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	srv.snapshots.open(js)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.bootstrap(ctx, through(js)) }()
	select {
	case line := <-said:
		if !strings.Contains(line, "waiting for it") || !strings.Contains(line, why) {
			t.Error(line)
		}
	case err := <-ended:
		cancel()
		t.Fatal("ended without a broker: ", err)
	case <-time.After(patience):
		t.Error("nothing is said")
	}
	eventstest.Until(t, func() bool { // says why, too
		reason := srv.live.readiness().Reason
		return strings.Contains(reason, "waiting for the broker") && strings.Contains(reason, part)
	})
	cancel()
	if err := <-ended; err == nil {
		t.Error("ended without a broker")
	}
}

// logLines hands on what is logged.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
