package eventstest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/broker"
)

// patience bounds every call to the broker in these helpers.
const patience = 30 * time.Second

// Broker starts an embedded broker on a free loopback port with its streams in the test's
// directory, not synced to disk, and stops it at the test's end. mutate changes the
// configuration first, for example to keep a directory over a restart.
func Broker(t testing.TB, mutate ...func(*broker.Config)) *broker.Broker {
	t.Helper()
	cfg := broker.Config{StoreDir: t.TempDir(), Addr: "127.0.0.1:0", UnsafeNoSync: true}
	for _, m := range mutate {
		m(&cfg)
	}
	b, err := broker.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Shutdown)
	return b
}

// Connect opens JetStream on an in-process connection, closed at the test's end.
func Connect(t testing.TB, b *broker.Broker, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	nc, err := b.Connect(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Stream creates the event stream REGISTRY as the contract has it, with a new epoch, after
// mutate has changed its configuration.
func Stream(t testing.TB, js jetstream.JetStream, mutate ...func(*jetstream.StreamConfig)) jetstream.Stream {
	t.Helper()
	cfg := events.StreamConfig(events.DefaultStream, 1, events.DefaultHistory, events.NewEpoch())
	for _, m := range mutate {
		m(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := js.CreateStream(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
