package main

import (
	"context"
	"fmt"

	"example.org/registry/events"
)

// publishCmd sends NDJSON events into the stream.
type publishCmd struct {
	Files     []string   `arg:"" name:"FILE" help:"NDJSON files, one CloudEvent a line; - is standard input. Blank lines are skipped."`
	NATSURL   []string   `name:"nats-url" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"Broker, one or more addresses separated by commas. The default is the embedded broker of a server on this machine."`
	Stream    streamName `default:"REGISTRY" help:"Name of the event stream."`
	MaxErrors int        `default:"0" help:"Bad lines to name and pass over. The one that exceeds this number stops the command."`
	DryRun    bool       `help:"Check every line, send nothing. Needs no broker."`
	natsFlags
}

// Help is what registry publish --help says beyond the flags.
func (publishCmd) Help() string {
	return "Each line is checked before it is sent. A bad line, or one whose event id has been there before in the same run, " +
		"is named with its number and the reason and not sent; the exit status is then 1. Sending the same file again within two " +
		"minutes adds nothing (the stream knows the ids); later it sets the same states again."
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
	if err := c.natsFlags.check(); err != nil && !c.DryRun {
		return nil, err
	}
	return openInputs(c.Files, p.stdin)
}

// sender connects to the stream. A dry run gets one that accepts everything.
func (c *publishCmd) sender(ctx context.Context) (send sendFunc, hangUp func(), err error) {
	if c.DryRun {
		return pretend, func() {}, nil
	}
	nc, js, err := c.natsFlags.reachStream(ctx, c.NATSURL, string(c.Stream))
	if err != nil {
		return nil, nil, err
	}
	publisher := events.NewPublisher(js, events.PublisherConfig{Stream: string(c.Stream)})
	return publisher.PublishAll, nc.Close, nil
}

// pretend is the sender of a dry run.
func pretend(_ context.Context, all []events.Message) (events.Summary, error) {
	return events.Summary{Sent: len(all)}, nil
}
