package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/projector"
	"example.org/registry/snapshots"
)

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
	r := projecting{broker: eventstest.Broker(t), server: &server{flags: &serveCmd{Stream: "REGISTRY"}, live: newLive()}}
	nc, err := nats.Connect(r.broker.ClientURL(), projector.ConnectOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	store, model, err := snapshots.Open(t.Context(), snapshots.Config{Path: filepath.Join(t.TempDir(), "registry.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // a test may have closed it
	if err := r.live.database(t.Context()); err == nil {
		t.Error("well before anything is open")
	}
	if err := r.showBroker(nc); err != nil {
		t.Fatal(err)
	}
	p := projector.New(projector.Config{Conn: nc, Stream: "REGISTRY", Replicas: 1, History: 5, Model: model, Store: store, Saved: store.Checkpoint()})
	r.live.show(newGeneration(generation{model: model, store: store, projector: p}))
	r.store, r.js = store, r.live.broker.Load().js
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	until(t, func() bool { now := p.Progress(); return now.CaughtUp && now.Connected })
	return r
}

// until waits for a condition.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

// database asks the store and the stream, live: it does not go by what the projector last knew.
func TestDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(projecting)
		want   string
	}{
		"the stream is gone": {func(r projecting) {
			if err := r.js.DeleteStream(t.Context(), "REGISTRY"); err != nil {
				t.Error(err)
			}
		}, ""},
		"the broker is gone": {func(r projecting) { r.broker.Shutdown() }, ""},
		"the store is gone":  {func(r projecting) { _ = r.store.Close() }, "store"},
	} {
		t.Run(name, func(t *testing.T) {
			r := project(t)
			if err := r.live.database(t.Context()); err != nil {
				t.Errorf("while all is well: %v", err)
			}
			c.breaks(r)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := r.live.database(ctx); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// A stream that has been replaced freezes the projection, and that shows.
func TestDatabaseWhileFrozen(t *testing.T) {
	r := project(t)
	if err := r.js.DeleteStream(t.Context(), "REGISTRY"); err != nil {
		t.Fatal(err)
	}
	eventstest.Stream(t, r.js)
	until(t, func() bool { p, _ := r.live.progress(); return p.Frozen })
	if err := r.live.database(t.Context()); err == nil || !strings.Contains(err.Error(), "frozen") {
		t.Errorf("%v", err)
	}
}
