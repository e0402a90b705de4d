package eventstest

import (
	"context"
	"errors"
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

// Create creates a stream, possibly of a name that was deleted just before: the broker removes the
// files of the deleted one after it has said that it is gone, and refuses the new one meanwhile.
func Create(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	const createFailed = jetstream.ErrorCode(10049)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := js.CreateStream(ctx, cfg)
		var api *jetstream.APIError
		busy := errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) || errors.As(err, &api) && api.ErrorCode == createFailed
		if !busy {
			return s, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
	}
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
	s, err := Create(ctx, js, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
