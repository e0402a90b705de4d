package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/events/publish"
	"example.org/registry/projector/recovery"
)

// publishCmd sends NDJSON events into the stream.
type publishCmd struct {
	Files     []string `arg:"" name:"FILE" help:"NDJSON files, one CloudEvent a line, also packed as .gz or .zst; - is standard input. Blank lines are skipped."`
	MaxErrors int      `default:"0" help:"Report and skip this many bad lines; one more stops the command."`
	DryRun    bool     `help:"Check every line but send nothing. Needs no broker."`
	cli.StreamFlags
}

// Help returns the help beyond the flags.
func (publishCmd) Help() string {
	return "Checks each line before it sends it. A bad line is reported with its number and the reason and not sent; the exit status is then 1. " +
		"What the stream has in the same or a greater revision is not sent, so the same files may be sent again at any time. " +
		"Prints what the good lines say of each list."
}

// Run publishes the files in order and prints the summary, also if it stops early.
func (c *publishCmd) Run(p *process) error {
	if c.MaxErrors < 0 {
		return cli.Usagef("--max-errors: must not be negative")
	}
	if err := c.CheckURLs(); err != nil {
		return err
	}
	if err := checkInputs(c.Files); err != nil {
		return err
	}

	run := &publishing{send: checkOnly, dry: c.DryRun, maxErrors: c.MaxErrors, stderr: p.stderr,
		progress: cli.NewProgress(p.stderr, "publishing", "events")}
	if !c.DryRun {
		if err := c.Check(); err != nil {
			return err
		}
		nc, js, err := c.Open(p.ctx, "registry publish")
		if err != nil {
			return err
		}
		defer nc.Close()
		run.send = publish.New(js, publish.Config{Stream: string(c.Stream)}).PublishAll
	}

	err := run.publishFiles(p.ctx, c.Files, p.stdin)
	_, printErr := fmt.Fprintln(p.stdout, run.counts.String()+run.summary())
	run.counts.warn(p.stderr)
	if err == nil {
		err = printErr
	}
	return err
}

// checkOnly is PublishAll of a dry run.
func checkOnly(_ context.Context, messages []publish.Message) (publish.Summary, error) {
	for i := range messages {
		if err := events.CheckRevision(messages[i].Event.Data, 0, time.Now()); err != nil {
			return publish.Summary{Sent: i}, &publish.MessageError{Index: i, Err: err}
		}
	}
	return publish.Summary{Sent: len(messages)}, nil
}

// batchLines is how many events are sent as one atomic batch: the broker's own limit.
const batchLines = 1000

// publishing is one run of publish.
type publishing struct {
	send      func(context.Context, []publish.Message) (publish.Summary, error) // PublishAll
	dry       bool
	maxErrors int
	stderr    io.Writer // gets a line for each bad line of the input
	progress  *cli.Progress

	pending []line // checked, not sent yet; at most batchLines
	sum     publish.Summary
	bad     int
	stopped string // where --max-errors stopped the run
	counts  counts
}

// line is a line of the input.
type line struct {
	place   string // as compilers write it
	text    []byte
	message publish.Message
	err     error // why it must not be sent
}

// errTooManyBad ends the reading of the input.
var errTooManyBad = errors.New("too many bad lines")

// publishFiles publishes all files. An error explains why not everything was sent.
func (p *publishing) publishFiles(ctx context.Context, files []string, stdin io.Reader) error {
	group, running := errgroup.WithContext(ctx)
	lines := make(chan line, batchLines)
	group.Go(func() error {
		defer close(lines)
		for _, name := range files {
			if err := readFile(running, name, stdin, lines); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error { return p.publishLines(running, lines) })
	return p.explain(ctx, group.Wait())
}

// readFile sends the lines of a file.
func readFile(ctx context.Context, name string, stdin io.Reader, to chan<- line) error {
	in, err := openInput(ctx, name, stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	err = readLines(in, func(number int, text []byte, err error) error {
		l := line{place: fmt.Sprintf("%s:%d", name, number), text: text, err: err}
		if err == nil {
			l.message, l.err = publish.ParseMessage(text)
		}
		select {
		case to <- l:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// publishLines publishes lines in batches. What a pipe has brought is sent before it brings more, since
// it may be a delisting.
func (p *publishing) publishLines(ctx context.Context, lines <-chan line) error {
	for {
		if len(lines) == 0 || len(p.pending) == batchLines {
			if err := p.flush(ctx); err != nil {
				return err
			}
		}
		select {
		case l, more := <-lines:
			if !more {
				return p.flush(ctx)
			}
			if err := p.addLine(ctx, l); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// addLine adds a line of the input to the next batch, or reports it as bad.
func (p *publishing) addLine(ctx context.Context, l line) error {
	if recovery.IsTombstonesEnd(l.text) {
		return nil
	}
	if l.err != nil {
		return p.refuse(ctx, l, l.err)
	}
	p.pending = append(p.pending, l)
	return nil
}

// refuse reports a bad line. The one that exceeds the maximum ends the run; the good lines before it
// are sent.
func (p *publishing) refuse(ctx context.Context, l line, reason error) error {
	p.bad++
	if p.bad > p.maxErrors {
		p.stopped = l.place
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(p.stderr, "%s: %s%s\n", l.place, reason, nameOf(l.text)); err != nil {
		return err
	}
	if p.stopped != "" {
		return errTooManyBad
	}
	return nil
}

// nameOf names the event of a bad line by its id, so that it is found in what it was made of. It is
// empty if the line has none.
func nameOf(text []byte) string {
	var e struct{ ID string }
	if json.Unmarshal(text, &e) != nil || e.ID == "" || len(e.ID) > 256 {
		return ""
	}
	return fmt.Sprintf(" (event %q)", e.ID)
}

// flush sends the pending lines and waits until the stream has stored them. A message that the
// publisher refuses, such as another state in a known revision, is a bad line like any other.
func (p *publishing) flush(ctx context.Context) error {
	for len(p.pending) > 0 {
		batch := p.pending
		messages := make([]publish.Message, len(batch))
		for i := range batch {
			messages[i] = batch[i].message
		}
		sum, err := p.send(ctx, messages)
		p.sum.Sent += sum.Sent
		p.sum.Known += sum.Known
		p.sum.Stale += sum.Stale
		p.sum.LastSequence = max(p.sum.LastSequence, sum.LastSequence)

		done := len(batch)
		failed, stopped := errors.AsType[*publish.MessageError](err)
		if stopped {
			done = failed.Index
		}
		for _, l := range batch[:done] {
			p.counts.add(l.message.Event.Data)
		}
		p.progress.Add(done)
		p.pending = nil
		if err == nil {
			return nil
		}

		reason, wrong := errors.AsType[*events.Error](err)
		if !stopped || !wrong {
			return stopError{batch[min(done, len(batch)-1)].place, err}
		}
		p.pending = batch[done+1:]
		if p.bad == p.maxErrors {
			p.pending = nil // the lines after the one that stops the run are not sent
		}
		if err := p.refuse(ctx, batch[done], reason); err != nil {
			return err
		}
	}
	return nil
}

// stopError is the error of a run that the broker stopped.
type stopError struct {
	place string
	err   error
}

func (e stopError) Error() string {
	return fmt.Sprintf("stopped at %s: %v; publish the same files again to send the rest; if it stops again, "+
		"the broker's log or /projection of the server says why", e.place, e.err)
}

func (e stopError) Unwrap() error { return e.err }

// explain returns the error of a run that ended with err.
func (p *publishing) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted: publish the same files again to send the rest")
	}
	if errors.Is(err, errTooManyBad) {
		return fmt.Errorf("stopped at %s: correct the line and publish again, or allow more bad lines with --max-errors", p.stopped)
	}
	if err == nil && p.bad > 0 {
		return fmt.Errorf("%s not sent: correct and publish them again", cli.Count(p.bad, "bad line"))
	}
	return err
}

// summary returns the last line on standard output.
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

// counts counts what lines say, so that a mistake in an export is seen: all unverified, say.
type counts struct {
	listed, verified, removed map[events.List]int
	views, donations          int

	longIDs, rounded int // chat ids of more than 15 digits, and those of them that end in 000
	future           int // entries that were reported after now
	firstRounded     events.Subject
	firstFuture      events.Subject
}

// clockSkew is how far a clock may be ahead without a warning.
const clockSkew = 5 * time.Minute

func (c *counts) add(d events.Data) {
	if c.listed == nil {
		c.listed, c.verified, c.removed = map[events.List]int{}, map[events.List]int{}, map[events.List]int{}
	}
	switch d := d.(type) {
	case events.Entry:
		c.addEntry(d)
	case events.Delisting:
		c.removed[d.List]++
	case events.Views:
		c.views++
	default:
		c.donations++
	}
}

func (c *counts) addEntry(d events.Entry) {
	c.listed[d.List]++
	if d.Verified {
		c.verified[d.List]++
	}
	if d.ReportedAt.After(time.Now().Add(clockSkew)) {
		c.future++
		if c.future == 1 {
			c.firstFuture = d.Subject()
		}
	}
	if len(d.ChatID) <= 15 || strings.Trim(d.ChatID, "0123456789") != "" {
		return
	}
	c.longIDs++
	if strings.HasSuffix(d.ChatID, "000") {
		c.rounded++
		if c.rounded == 1 {
			c.firstRounded = d.Subject()
		}
	}
}

// warn writes a line for each kind of value that is likely to be a mistake.
func (c *counts) warn(w io.Writer) {
	// One in a thousand ends in 000 by chance. A spreadsheet keeps 15 digits of a number, so that
	// rounded ids are other persons'.
	if c.rounded*100 > c.longIDs {
		fmt.Fprintf(w, "warning: %d of %d long chat ids end in 000 (the first: %s), as a spreadsheet or JavaScript rounds numbers: "+
			"compare one with its source; if it is another, export the ids as text\n", c.rounded, c.longIDs, c.firstRounded)
	}
	if c.future > 0 {
		fmt.Fprintf(w, "warning: %s in the future (the first: %s): such an entry stays the newest until then; compare the backend's clock and time zone\n",
			cli.Count(c.future, "report"), c.firstFuture)
	}
}

// String returns a line for each list that has lines.
func (c *counts) String() string {
	var s strings.Builder
	for _, l := range events.Lists() {
		if c.listed[l]+c.removed[l] > 0 {
			fmt.Fprintf(&s, "%s: %d listed (%d verified), %d removed\n", l, c.listed[l], c.verified[l], c.removed[l])
		}
	}
	if c.views > 0 {
		fmt.Fprintf(&s, "views: %s\n", cli.Count(c.views, "line"))
	}
	if c.donations > 0 {
		fmt.Fprintf(&s, "donations: %s\n", cli.Count(c.donations, "line"))
	}
	return s.String()
}
