package main

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// publishCmd sends NDJSON events into the stream.
type publishCmd struct {
	Files     []string   `arg:"" name:"FILE" help:"NDJSON files, one CloudEvent a line; - is standard input. Blank lines are skipped."`
	NATSURL   []string   `name:"nats-url" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"Broker, one or more addresses separated by commas. The default is the embedded broker of a server on this machine."`
	Stream    streamName `default:"REGISTRY" help:"Name of the event stream."`
	MaxErrors int        `default:"0" help:"Bad lines to name and pass over. The one that exceeds this number stops the command."`
	DryRun    bool       `help:"Check every line, send nothing. Needs no broker."`
	creating
	natsFlags
}

// Help is what registry publish --help says beyond the flags.
func (publishCmd) Help() string {
	return "Each line is checked before it is sent. A bad line, or one whose event id has been there before in the same run, " +
		"is named with its number and the reason and not sent; the exit status is then 1. Sending the same files again is safe: " +
		"what the stream still knows by its id, for two minutes at most, is not stored twice, and no state ends up over a later one in the files. What the stream has forgotten is set again. " +
		"Files that belong together go into one command, in their order."
}

// Run publishes the files in order and prints the summary, also when it stops early.
func (c *publishCmd) Run(p *process) error {
	inputs, err := c.check(p)
	if err != nil {
		return err
	}
	send, hangUp, err := c.sender(p.ctx)
	if err != nil {
		return err
	}
	defer hangUp()
	run := &publishing{
		send:      send,
		maxErrors: c.MaxErrors,
		complaint: p.stderr,
		ids:       idSet{},
		bar:       newBar(p.stderr, "publishing", totalSize(inputs), true),
	}
	err = run.lines(p.ctx, inputs)
	run.bar.finish()
	if _, writeErr := fmt.Fprintln(p.stdout, run.summary(c.DryRun)); err == nil {
		err = writeErr
	}
	return err
}

func (c *publishCmd) check(p *process) ([]input, error) {
	if c.MaxErrors < 0 {
		return nil, usagef("--max-errors: must not be negative")
	}
	if err := checkURLs(c.NATSURL); err != nil {
		return nil, err
	}
	if err := c.creating.check(); err != nil {
		return nil, err
	}
	if err := c.natsFlags.check(); err != nil && !c.DryRun {
		return nil, err
	}
	return openInputs(c.Files, p.stdin)
}

// sender connects to the stream. A dry run gets one that only checks.
func (c *publishCmd) sender(ctx context.Context) (send sendFunc, hangUp func(), err error) {
	if c.DryRun {
		return c.pretend, func() {}, nil
	}
	var prepare prepareFunc
	if c.CreateStream {
		prepare = c.create
	}
	nc, js, err := c.natsFlags.reachStream(ctx, "registry publish", c.NATSURL, string(c.Stream), prepare)
	if err != nil {
		return nil, nil, err
	}
	// One run for the whole command: it must remember across the batches.
	return c.publisher(js).NewRun().PublishAll, nc.Close, nil
}

func (c *publishCmd) publisher(js jetstream.JetStream) *events.Publisher {
	return events.NewPublisher(js, events.PublisherConfig{Stream: string(c.Stream)})
}

// pretend is the sender of a dry run: it refuses what the publisher would.
func (c *publishCmd) pretend(_ context.Context, all []events.Message) (events.Summary, error) {
	publisher := c.publisher(nil)
	for i := range all {
		if err := publisher.Check(&all[i]); err != nil {
			return events.Summary{}, &events.MessageError{Index: i, Err: err}
		}
	}
	return events.Summary{Sent: len(all)}, nil
}
