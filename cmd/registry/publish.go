package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/events/publish"
	"example.org/registry/snapshots"
)

// publishCmd sends NDJSON events into the stream.
type publishCmd struct {
	Files     []string `arg:"" name:"FILE" help:"NDJSON files, one CloudEvent a line, also packed as .gz or .zst, such as exports; - is standard input. Blank lines are skipped."`
	MaxErrors uint     `default:"0" help:"Report and skip this many bad lines; one more stops the command."`
	DryRun    bool     `help:"Check every line but send nothing. Needs no broker."`
	cli.StreamFlags
}

func (publishCmd) Help() string {
	return "Checks each line before it sends it. A bad line is reported with its number and the reason and not sent; the exit status is then 1. " +
		"What the stream has in the same or a greater revision is not sent, so the same files may be sent again at any time."
}

// Run publishes the files in order and prints the summary, also if it stops early.
func (c *publishCmd) Run(p *process) error {
	run := &publishing{send: checkOnly, dry: c.DryRun, maxErrors: int(c.MaxErrors), stderr: p.stderr,
		progress: cli.NewProgress(p.stderr, "publishing", "events")}
	if !c.DryRun {
		nc, js, err := c.Open(p.ctx, "registry publish")
		if err != nil {
			return err
		}
		defer nc.Close()
		run.send = publish.New(js, publish.Config{Stream: string(c.Stream)}).PublishAll
	}

	err := run.publishFiles(p.ctx, c.Files, p.stdin)
	_, printErr := fmt.Fprintln(p.stdout, run.summary())
	if err == nil {
		err = printErr
	}
	return err
}

// checkOnly takes the place of PublishAll in a dry run: it sends nothing, and counts good messages as sent.
func checkOnly(_ context.Context, messages []publish.Message) (publish.Summary, error) {
	for i := range messages {
		if err := events.CheckRevision(messages[i].Event.Data, 0, time.Now()); err != nil {
			return publish.Summary{Sent: i}, &publish.MessageError{Index: i, Err: err}
		}
	}
	return publish.Summary{Sent: len(messages)}, nil
}

// batchLines bounds how many events are sent at once. A broker takes no more in one atomic batch.
const batchLines = 1000

// publishing is one run of publish.
type publishing struct {
	send      func(context.Context, []publish.Message) (publish.Summary, error) // PublishAll or checkOnly
	dry       bool
	maxErrors int
	stderr    io.Writer // gets a line for each bad line of the input
	progress  *cli.Progress

	pending []line // checked, not sent yet; at most batchLines
	sum     publish.Summary
	bad     int    // how many lines were refused
	stopped string // the place of the line that exceeded maxErrors; empty if none did
}

// line is a line of the input.
type line struct {
	place   string // the file and the number of the line, as compilers write them
	message publish.Message
	err     error // why it must not be sent
}

// publishFiles publishes all files. An error explains why not everything was sent.
func (p *publishing) publishFiles(ctx context.Context, files []string, stdin io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	// After an error, nobody waits for this goroutine, since it may be waiting for a silent pipe.
	lines := make(chan line, batchLines)
	readResult := make(chan error, 1)
	go func() {
		defer close(lines)
		readResult <- readFiles(ctx, files, stdin, lines)
	}()

	err := p.publishLines(ctx, lines)
	if err == nil {
		err = <-readResult
	}
	if err == nil && p.bad > 0 {
		return fmt.Errorf("%s not sent: correct and publish them again", cli.Count(p.bad, "bad line"))
	}
	return err
}

// readFiles sends the lines of all files to a channel.
func readFiles(ctx context.Context, files []string, stdin io.Reader, to chan<- line) error {
	for _, name := range files {
		from := stdin
		if name != "-" {
			file, err := os.Open(name)
			if err != nil {
				return cli.FileError("FILE", name, err)
			}
			defer file.Close()
			from = file
		}

		if err := readEvents(ctx, name, from, to); err != nil {
			return fmt.Errorf("%s: %w", name, cli.WithoutPath(err))
		}
	}
	return nil
}

// maxLine bounds a line of the input, in bytes.
const maxLine = 1 << 20

// readEvents sends the lines of a file, which may be packed, to a channel. It passes over the first and the
// last line of an export, which are no events.
func readEvents(ctx context.Context, name string, from io.Reader, to chan<- line) error {
	unpacked, err := snapshots.Unpack(from)
	if err != nil {
		return err
	}
	return snapshots.ReadLines(unpacked, maxLine, func(number int, text []byte, tooLong error) error {
		if snapshots.IsFrame(text) {
			return nil
		}
		l := line{place: fmt.Sprintf("%s:%d", name, number), err: tooLong}
		if tooLong == nil {
			l.message, l.err = publish.ParseMessage(bytes.Clone(text)) // ReadLines uses text again
		}

		select {
		case to <- l:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// publishLines publishes lines in batches. If no further line is there yet, it sends the pending lines at once: a
// delisting among them must not wait for a silent pipe.
func (p *publishing) publishLines(ctx context.Context, lines <-chan line) error {
	for {
		if len(lines) == 0 || len(p.pending) == batchLines {
			if err := p.sendPending(ctx); err != nil {
				return err
			}
		}

		select {
		case l, more := <-lines:
			if !more {
				return p.sendPending(ctx)
			}
			if l.err == nil {
				p.pending = append(p.pending, l)
				continue
			}

			// The bad line may end the run, so the good lines before it are sent first.
			if err := p.sendPending(ctx); err != nil {
				return err
			}
			if err := p.refuseLine(l.place, l.err); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// refuseLine reports a bad line. It returns an error if the line exceeds maxErrors, which ends the run.
func (p *publishing) refuseLine(place string, reason error) error {
	p.bad++
	if _, err := fmt.Fprintf(p.stderr, "%s: %s\n", place, reason); err != nil {
		return err
	}
	if p.bad <= p.maxErrors {
		return nil
	}
	p.stopped = place
	return fmt.Errorf("stopped at %s: correct the line and publish again, or allow more bad lines with --max-errors", place)
}

// sendPending sends the pending lines and waits until the stream has stored them. A message that the
// publisher refuses, such as another state in a revision that the stream has, is a bad line like any other.
func (p *publishing) sendPending(ctx context.Context) error {
	for len(p.pending) > 0 {
		batch := p.pending
		p.pending = nil
		err := p.sendBatch(ctx, batch)
		if err == nil {
			return nil
		}

		failed, isMessage := errors.AsType[*publish.MessageError](err)
		if !isMessage {
			return stopError(batch[len(batch)-1].place, err)
		}
		place := batch[failed.Index].place
		reason, isBadLine := errors.AsType[*events.Error](err)
		if !isBadLine {
			return stopError(place, failed.Err)
		}
		if err := p.refuseLine(place, reason); err != nil {
			return err
		}

		// The lines before the bad one have been sent. Go on with the lines after it.
		p.pending = batch[failed.Index+1:]
	}
	return nil
}

// sendBatch sends lines, and adds them to the sum.
func (p *publishing) sendBatch(ctx context.Context, batch []line) error {
	messages := make([]publish.Message, len(batch))
	for i := range batch {
		messages[i] = batch[i].message
	}

	sum, err := p.send(ctx, messages)
	p.sum.Add(sum)
	p.progress.Add(sum.Done())
	return err
}

// stopError returns the error of a run that cannot go on since the broker failed.
func stopError(place string, err error) error {
	return fmt.Errorf("stopped at %s: %w; publish the same files again to send the rest; if it stops again, "+
		"the broker's log or /projection of the server says why", place, err)
}

// summary returns the line that the command prints at its end.
func (p *publishing) summary() string {
	text := fmt.Sprintf("%d sent, %d already there, %d stale, %s", p.sum.Sent, p.sum.Known, p.sum.Stale, cli.Count(p.bad, "bad line"))
	if p.dry {
		text = fmt.Sprintf("%s, %s; nothing sent (dry run)", cli.Count(p.sum.Sent, "good line"), cli.Count(p.bad, "bad line"))
	}
	if p.sum.LastSequence > 0 {
		text += fmt.Sprintf("; last sequence %d", p.sum.LastSequence)
	}

	if p.stopped != "" {
		text += "; stopped at " + p.stopped
	}
	return text
}
