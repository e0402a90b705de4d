package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// creating says how publish makes the stream where there is none.
type creating struct {
	CreateStream   bool `help:"Make the stream where the broker has none: the way back where it was lost. A server that knew it goes on serving what it has until registry rebuild --accept-stream."`
	StreamReplicas int  `default:"1" help:"Replicas of a stream that is created, 1 to 5. The embedded broker has one."`
	StreamHistory  int  `default:"5" help:"Messages kept of a subject in a stream that is created. 0: all."`
}

func (c creating) check() error {
	switch {
	case c.StreamReplicas < 1 || c.StreamReplicas > 5:
		return usagef("--stream-replicas: must be 1 to 5")
	case c.StreamHistory < 0 || c.StreamHistory > 1_000_000:
		return usagef("--stream-history: must be 0 to 1000000")
	}
	return nil
}

// create makes the stream as a server would (API contract, the stream). One that is there already stays as it is.
func (c creating) create(ctx context.Context, js jetstream.JetStream, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, err := js.Stream(ctx, stream)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil // whatever else it is, findStream says it
	}
	_, err = js.CreateStream(ctx, events.StreamConfig(stream, c.StreamReplicas, c.StreamHistory, events.NewEpoch()))
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // a server was faster
		return fmt.Errorf("make stream %s: %w; correct --stream or --stream-replicas", stream, err)
	}
	return nil
}
