package main

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
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

	for _, cfg := range []jetstream.StreamConfig{
		stream.Config(string(c.Stream), c.StreamReplicas, int(c.StreamHistory), stream.Identity{}),
		stream.RejectedConfig(c.StreamReplicas),
		snapshots.BucketConfig(c.StreamReplicas),
	} {
		name := strings.TrimPrefix(cfg.Name, "OBJ_") // an operator knows an object store without this prefix
		created, err := stream.Stream{JS: js, Name: cfg.Name}.Ensure(p.ctx, cfg)
		if err != nil {
			return fmt.Errorf("broker at %s: %s: %w", c.Addresses(), name, cli.Advise(err))
		}

		outcome := "exists"
		if created {
			outcome = "created"
		}
		if _, err := fmt.Fprintf(p.stdout, "%s: %s\n", name, outcome); err != nil {
			return err
		}
	}
	return nil
}
