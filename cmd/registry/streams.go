package main

import (
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

// Help returns the help beyond the flags.
func (streamsCreateCmd) Help() string {
	return "Creates the event stream, the stream of rejected events and the object store of snapshots. What exists stays as it is."
}

// Run prints a line for each stream.
func (c *streamsCreateCmd) Run(p *process) error {
	if err := c.NewStreamFlags.Check(); err != nil {
		return err
	}

	nc, js, err := c.Connect("registry streams")
	if err != nil {
		return err
	}
	defer nc.Close()

	// A stream is created only if it is missing, so that its configuration stays.
	create := func(cfg jetstream.StreamConfig) func() error {
		return func() error {
			_, err := js.CreateStream(p.ctx, cfg)
			return err
		}
	}

	rejected := stream.RejectedConfig(c.StreamReplicas)
	for _, s := range []struct {
		name, stream string
		create       func() error
	}{
		{string(c.Stream), string(c.Stream), create(stream.Config(string(c.Stream), c.StreamReplicas, c.StreamHistory, stream.Identity{}))},
		{rejected.Name, rejected.Name, create(rejected)},
		{snapshots.BucketName, "OBJ_" + snapshots.BucketName, func() error { return snapshots.NewBucket(js, c.StreamReplicas).Create(p.ctx) }},
	} {
		outcome := "exists"
		_, err := stream.Stream{JS: js, Name: s.stream}.Info(p.ctx)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			outcome = "created"
			err = natserr.Explain(nc, s.create(), jetstream.DefaultAPIPrefix+"STREAM.CREATE."+s.stream)
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
