package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
	"example.org/registry/snapshots"
)

// streamsCmd makes streams.
type streamsCmd struct {
	Create streamsCreateCmd `cmd:"" help:"Create the streams that are missing, for servers that may not."`
}

// streamsCreateCmd makes the streams that a server makes at its first start.
type streamsCreateCmd struct {
	cli.NewStreamFlags
	cli.StreamFlags
}

func (streamsCreateCmd) Help() string {
	return "Creates the event stream, the stream of rejected events and the object store of snapshots. What exists stays as it is."
}

// Run prints a line for each stream.
func (c *streamsCreateCmd) Run(p *process) error {
	nc, js, err := c.Connect("registry streams")
	if err != nil {
		return err
	}
	defer nc.Close()

	creator := func(cfg jetstream.StreamConfig) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := js.CreateStream(ctx, cfg)
			return err
		}
	}

	events := stream.Config(string(c.Stream), c.StreamReplicas, int(c.StreamHistory), stream.Identity{})
	rejected := stream.RejectedConfig(c.StreamReplicas)
	bucket := snapshots.NewBucket(js, c.StreamReplicas)
	for _, s := range []struct {
		name, stream string
		create       func(context.Context) error
	}{
		{name: events.Name, stream: events.Name, create: creator(events)},
		{name: rejected.Name, stream: rejected.Name, create: creator(rejected)},
		{name: snapshots.BucketName, stream: "OBJ_" + snapshots.BucketName, create: bucket.Create},
	} {
		// An existing stream keeps its configuration.
		outcome := "exists"
		_, err := stream.Stream{JS: js, Name: s.stream}.Info(p.ctx)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			outcome = "created"
			err = natserr.Explain(nc, s.create(p.ctx), jetstream.DefaultAPIPrefix+"STREAM.CREATE."+s.stream)
		}
		if err != nil {
			return fmt.Errorf("broker at %s: %s: %w", c.Addresses(), s.name, cli.Advise(err))
		}
		if _, err := fmt.Fprintf(p.stdout, "%s: %s\n", s.name, outcome); err != nil {
			return err
		}
	}
	return nil
}
