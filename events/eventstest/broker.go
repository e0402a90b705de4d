package eventstest

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/pause"
	"example.org/registry/events/stream"
)

// patience bounds every call to the broker in these helpers.
const patience = 30 * time.Second

// Broker starts an embedded broker on a free loopback port, with its streams in the test's
// directory and not synced to disk, and stops it at the test's end. mutate changes the
// configuration first, for example to keep a directory over a restart.
func Broker(t testing.TB, mutate ...func(*broker.Config)) *broker.Broker {
	t.Helper()
	cfg := broker.Config{StoreDir: t.TempDir(), Addr: "127.0.0.1:0", UnsafeNoSync: true}
	for _, change := range mutate {
		change(&cfg)
	}

	b, err := broker.Start(cfg)
	require.NoError(t, err)
	running.Add(1)
	t.Cleanup(func() {
		b.Shutdown()
		running.Add(-1)
		awaitGoroutines()
	})
	return b
}

// Server starts a NATS server with options that Broker does not support, on a free loopback port,
// and stops it at the test's end. It does not wait until clients can connect.
func Server(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.Host = "127.0.0.1"
	o.Port = server.RANDOM_PORT
	o.NoSigs = true
	o.NoLog = true

	s, err := server.NewServer(o)
	require.NoError(t, err)
	running.Add(1)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
		running.Add(-1)
		awaitGoroutines()
	})
	return s
}

// running counts the servers that these helpers have started and not yet stopped.
var running atomic.Int32

// awaitGoroutines waits until the goroutines of all servers have ended, if no server runs: a server's shutdown
// does not wait for all of its goroutines, and on a busy machine a goroutine can outlive goleak's retries. After
// 3 s it leaves the goroutines to goleak.
func awaitGoroutines() {
	end := time.Now().Add(3 * time.Second)
	for running.Load() == 0 && hasServerStack() && time.Now().Before(end) {
		time.Sleep(5 * time.Millisecond)
	}
}

// hasServerStack reports whether a goroutine of a server is left, apart from the known leak ([Leaks]).
func hasServerStack() bool {
	var all strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&all, 2) // 2 writes the stacks as text, which a Builder never refuses
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, "nats-server/v2/server.") && !strings.Contains(stack, "flushStreamStateLoop") {
			return true
		}
	}
	return false
}

// Connect opens JetStream on an in-process connection, closed at the test's end.
func Connect(t testing.TB, b *broker.Broker, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	nc, err := b.Connect(opts...)
	require.NoError(t, err)
	return openJetStream(t, nc)
}

// Dial opens JetStream on a connection to url, closed at the test's end.
func Dial(t testing.TB, url string, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, append([]nats.Option{nats.Timeout(patience)}, opts...)...)
	require.NoError(t, err)
	return openJetStream(t, nc)
}

func openJetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(patience))
	require.NoError(t, err)
	return js
}

// Create creates a stream, even of a name that was deleted just before. The broker acknowledges a
// deletion before it has removed the files, and refuses the new stream until then.
func Create(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	filesExist := &jetstream.APIError{ErrorCode: 10049}
	for {
		s, err := js.CreateStream(ctx, cfg)
		isDeleting := errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) || errors.Is(err, filesExist)
		if !isDeleting || !pause.For(ctx, 10*time.Millisecond) {
			return s, err
		}
	}
}

// Stream creates the event stream REGISTRY of events/CONTRACT.md#stream, with a new epoch. mutate changes
// the configuration first.
func Stream(t testing.TB, js jetstream.JetStream, mutate ...func(*jetstream.StreamConfig)) jetstream.Stream {
	t.Helper()
	cfg := stream.Config(events.DefaultStream, 1, events.DefaultHistory, stream.Identity{})
	for _, change := range mutate {
		change(&cfg)
	}

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := Create(ctx, js, cfg)
	require.NoError(t, err)
	return s
}

// Publish publishes events one by one, as a backend would, and returns the last sequence.
func Publish(t testing.TB, js jetstream.JetStream, evs ...events.Event) uint64 {
	t.Helper()
	var last uint64
	for _, e := range evs {
		payload, err := events.Encode(e)
		require.NoError(t, err)
		last = publishMessage(t, js, &nats.Msg{Subject: e.Data.Subject().String(), Data: payload,
			Header: nats.Header{events.HeaderContent: {events.ContentType}}})
	}
	return last
}

// PublishRaw publishes any payload on any subject, to test rejections, and returns its sequence.
func PublishRaw(t testing.TB, js jetstream.JetStream, subject string, payload []byte) uint64 {
	t.Helper()
	return publishMessage(t, js, &nats.Msg{Subject: subject, Data: payload})
}

func publishMessage(t testing.TB, js jetstream.JetStream, msg *nats.Msg) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	// On a busy machine a new stream accepts nothing for a second or more.
	const wait = 20 * time.Millisecond
	ack, err := js.PublishMsg(ctx, msg, jetstream.WithRetryWait(wait), jetstream.WithRetryAttempts(int(patience/wait)))
	require.NoError(t, err)
	return ack.Sequence
}

// LonelyNode connects to a server that imitates a cluster node that is partitioned from the others. The server
// answers only requests for stream information, and names leader as the stream's leader, empty for none. Real
// nodes, which cmd/registry/cluster starts, give that answer only by chance.
func LonelyNode(t testing.TB, leader string) jetstream.JetStream {
	t.Helper()
	s := Server(t, &server.Options{})
	require.True(t, s.ReadyForConnections(patience), "the node does not start")
	js := Dial(t, s.ClientURL())

	answer, err := json.Marshal(jetstream.StreamInfo{Created: time.Now(), Cluster: &jetstream.ClusterInfo{Name: "nodes", Leader: leader}})
	require.NoError(t, err)
	_, err = js.Conn().Subscribe("$JS.API.STREAM.INFO.>", func(m *nats.Msg) { _ = m.Respond(answer) })
	require.NoError(t, err)
	return js
}
