package main

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// newStream configures a stream that has to be created.
type newStream struct {
	StreamReplicas int `default:"1" help:"Replicas of the stream, where it has to be created: 1 to 5. The embedded broker has one." group:"Broker and stream"`
	StreamHistory  int `default:"5" help:"Messages kept per subject in the stream, where it has to be created. 0: all." group:"Broker and stream"`
}

func (c newStream) check() error {
	if c.StreamReplicas < 1 || c.StreamReplicas > 5 {
		return cli.Usagef("--stream-replicas: must be 1 to 5")
	}
	if c.StreamHistory < 0 || c.StreamHistory > 1_000_000 {
		return cli.Usagef("--stream-history: must be 0 to 1000000")
	}
	return nil
}

// config returns the configuration of the event stream.
func (c newStream) config(name string) jetstream.StreamConfig {
	return stream.Config(name, c.StreamReplicas, c.StreamHistory, stream.Identity{})
}

// streamsCreateCmd makes what a server makes at its first start.
type streamsCreateCmd struct {
	newStream
	cli.StreamFlags
}

// Help returns the help beyond the flags.
func (streamsCreateCmd) Help() string {
	return "Creates the event stream, the stream of rejected events and the object store of snapshots. What exists stays as it is."
}

// createWithin bounds all requests.
const createWithin = 15 * time.Second

// Run prints a line for each stream.
func (c *streamsCreateCmd) Run(p *process) error {
	if err := errors.Join(c.newStream.check(), c.Check()); err != nil {
		return err
	}
	nc, js, err := connect(c.BrokerFlags, "registry streams")
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(p.ctx, createWithin)
	defer cancel()

	for _, cfg := range []jetstream.StreamConfig{c.config(string(c.Stream)), stream.RejectedConfig(c.StreamReplicas)} {
		err := c.create(p, ctx, js, cfg.Name, func() error {
			_, err := js.CreateStream(ctx, cfg)
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.create(p, ctx, js, snapshots.BucketName, func() error { return snapshots.NewBucket(js, c.StreamReplicas).Create(ctx) })
}

// create makes a stream if it is missing, and prints what became of it.
func (c *streamsCreateCmd) create(p *process, ctx context.Context, js jetstream.JetStream, name string, make func() error) error {
	streamName := name
	if name == snapshots.BucketName {
		streamName = "OBJ_" + name
	}
	_, err := stream.Stream{JS: js, Name: streamName}.Info(ctx)
	done := "exists"
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		done, err = "created", natserr.Explain(js.Conn(), make(), jetstream.DefaultAPIPrefix+"STREAM.CREATE."+streamName)
	}
	if err != nil {
		return fmt.Errorf("broker at %s: %s: %w", c.Addresses(), name, cli.Advise(err))
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %s\n", name, done)
	return err
}
