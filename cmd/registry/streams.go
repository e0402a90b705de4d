package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/events/publish"
	"example.org/registry/snapshots/bucket"
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
	return publish.StreamConfig(name, c.StreamReplicas, c.StreamHistory, events.NewEpoch())
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
	nc, err := c.Connect("registry streams")
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.ctx, createWithin)
	defer cancel()

	for _, cfg := range []jetstream.StreamConfig{c.config(string(c.Stream)), publish.RejectedStreamConfig(c.StreamReplicas)} {
		_, err := js.Stream(ctx, cfg.Name)
		missing := errors.Is(err, jetstream.ErrStreamNotFound)
		if missing {
			_, err = js.CreateStream(ctx, cfg)
		}
		if err := c.report(p, cfg.Name, missing, err); err != nil {
			return err
		}
	}
	_, err = js.ObjectStore(ctx, bucket.Name)
	missing := errors.Is(err, jetstream.ErrBucketNotFound)
	if missing {
		_, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: bucket.Name, Replicas: c.StreamReplicas, Storage: jetstream.FileStorage})
	}
	return c.report(p, bucket.Name, missing, err)
}

// report prints what became of one stream.
func (c *streamsCreateCmd) report(p *process, name string, missing bool, err error) error {
	if err != nil {
		return fmt.Errorf("broker at %s: %s: %w", c.Addresses(), name, cli.Advise(err))
	}
	done := "exists"
	if missing {
		done = "created"
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %s\n", name, done)
	return err
}
