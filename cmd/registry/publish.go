package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/events/publish"
)

// publishCmd sends NDJSON events into the stream.
type publishCmd struct {
	Files     []string `arg:"" name:"FILE" help:"NDJSON files, one CloudEvent a line; - is standard input. Blank lines are skipped."`
	MaxErrors int      `default:"0" help:"Report and skip this many bad lines; one more stops the command."`
	DryRun    bool     `help:"Check every line but send nothing. Needs no broker."`
	creating
	cli.StreamFlags
}

// Help returns the help beyond the flags.
func (publishCmd) Help() string {
	return "Checks each line before it sends it. A bad line is reported with its number and the reason and not sent; the exit status is then 1. " +
		"What the stream has in the same or a greater revision is not sent, so the same files may be sent again at any time. " +
		"The same revision with another state is a bad line where the stream's state is true (events/CONTRACT.md#revisions); else it is sent, and named. " +
		"Prints what the good lines say of each list."
}

// Run publishes the files in order and prints the summary, also if it stops early.
func (c *publishCmd) Run(p *process) error {
	inputs, err := c.check(p)
	if err != nil {
		return err
	}
	send, disconnect, err := c.sender(p.ctx)
	if err != nil {
		return err
	}
	defer disconnect()
	bar := cli.NewProgress(p.stderr, "publishing", "bytes")
	bar.Set(0, totalSize(inputs))
	run := &publishing{send: send, maxErrors: c.MaxErrors, complaint: p.stderr, ids: idSet{}, bar: bar}
	err = run.lines(p.ctx, inputs)
	if _, writeErr := fmt.Fprintln(p.stdout, run.lists.String()+run.summary(c.DryRun)); err == nil {
		err = writeErr
	}
	if warning := run.lists.rounded(); warning != "" {
		if _, writeErr := fmt.Fprintln(p.stderr, warning); err == nil {
			err = writeErr
		}
	}
	return err
}

func (c *publishCmd) check(p *process) ([]input, error) {
	if c.MaxErrors < 0 {
		return nil, cli.Usagef("--max-errors: must not be negative")
	}
	if err := c.CheckURLs(); err != nil {
		return nil, err
	}
	if err := c.creating.check(); err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil && !c.DryRun {
		return nil, err
	}
	return openInputs(c.Files, p.stdin)
}

// sender connects to the stream. A dry run gets one that only checks.
func (c *publishCmd) sender(ctx context.Context) (send sendFunc, disconnect func(), err error) {
	if c.DryRun {
		return c.dryRun, func() {}, nil
	}
	var prepare cli.PrepareFunc
	if c.CreateStream {
		prepare = c.create
	}
	nc, js, err := c.Open(ctx, "registry publish", prepare)
	if err != nil {
		return nil, nil, err
	}
	return c.publisher(js).PublishAll, nc.Close, nil
}

func (c *publishCmd) publisher(js jetstream.JetStream) *publish.Publisher {
	return publish.New(js, publish.Config{Stream: string(c.Stream)})
}

// dryRun is the sender of a dry run. It refuses what the publisher would refuse.
func (c *publishCmd) dryRun(_ context.Context, all []publish.Message) (publish.Summary, error) {
	publisher := c.publisher(nil)
	for i := range all {
		err := publisher.Check(&all[i])
		if err == nil {
			err = events.CheckRevision(all[i].Event.Data, 0, time.Now())
		}
		if err != nil {
			return publish.Summary{}, &publish.MessageError{Index: i, Err: err}
		}
	}
	return publish.Summary{Sent: len(all)}, nil
}

// createWithin bounds the two requests that creating the stream takes.
const createWithin = 3 * time.Second

// creating creates a missing stream.
type creating struct {
	CreateStream bool `help:"Create the stream if the broker has none, such as after its loss. A server that followed the old one serves what it has until registry recover has run."`
	newStream
}

// newStream configures a stream that has to be created.
type newStream struct {
	StreamReplicas int `default:"1" help:"Replicas of the stream, where it has to be created: 1 to 5. The embedded broker has one." group:"Broker and stream"`
	StreamHistory  int `default:"5" help:"Messages kept per subject in the stream, where it has to be created. 0: all." group:"Broker and stream"`
}

func (c newStream) check() error {
	switch {
	case c.StreamReplicas < 1 || c.StreamReplicas > 5:
		return cli.Usagef("--stream-replicas: must be 1 to 5")
	case c.StreamHistory < 0 || c.StreamHistory > 1_000_000:
		return cli.Usagef("--stream-history: must be 0 to 1000000")
	}
	return nil
}

// create creates the stream as a server would (events/CONTRACT.md#stream). An existing one stays as
// it is.
func (c creating) create(ctx context.Context, js jetstream.JetStream, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, createWithin)
	defer cancel()
	_, err := js.Stream(ctx, stream)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil // findStream reports other errors
	}
	_, err = js.CreateStream(ctx, publish.StreamConfig(stream, c.StreamReplicas, c.StreamHistory, events.NewEpoch()))
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // a server was faster
		return fmt.Errorf("make stream %s: %w; correct --stream or --stream-replicas", stream, err)
	}
	return nil
}

// batchLines is how many events are sent as one atomic batch: the broker's own limit.
const batchLines = 1000

// publishing is one run of publish. One goroutine uses it.
type publishing struct {
	send      sendFunc
	maxErrors int
	complaint io.Writer // gets one line for each bad line of the input
	bar       *cli.Progress

	ids       idSet
	pending   []line // checked, not sent yet; at most batchLines
	good, bad int
	done      publish.Summary // without its Corrected
	lists     listCounts
	stopped   string // where --max-errors stopped the run
}

// sendFunc is Publisher.PublishAll: it counts the messages that it has dealt with, also if it
// returns an error.
type sendFunc func(context.Context, []publish.Message) (publish.Summary, error)

// errTooManyBad ends the reading of the input.
var errTooManyBad = errors.New("too many bad lines")

// lines publishes all inputs. An error explains why not everything was sent.
func (r *publishing) lines(ctx context.Context, inputs []input) error {
	err := eachLine(ctx, inputs, func(l *line) error { return r.line(ctx, l) }, func() error { return r.flush(ctx) })
	if err == nil || errors.Is(err, errTooManyBad) {
		// The good lines before the one that stops the run are still sent.
		if flushErr := r.flush(ctx); flushErr != nil {
			err = flushErr
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted: publish the same files again to send the rest")
	case err == nil && r.bad > 0, errors.Is(err, errTooManyBad):
		return r.badLines()
	}
	return err
}

// line adds one line of the input to the next batch, or reports it as bad.
func (r *publishing) line(ctx context.Context, l *line) error {
	if l.err != nil {
		return r.refuse(l)
	}
	switch known, same := r.ids.add(l.message.Event.ID, l.payload); {
	case known && !same:
		l.err = errors.New("id: the input has had another event of this id before")
		return r.refuse(l)
	case known: // a repeated line
		r.good++
		r.done.Known++
		r.bar.Add(l.size)
		return nil
	}
	r.good++
	r.pending = append(r.pending, *l)
	if len(r.pending) == batchLines {
		return r.flush(ctx)
	}
	return nil
}

// refuse reports a bad line.
func (r *publishing) refuse(l *line) error {
	r.bad++
	r.bar.Add(l.size)
	if _, err := fmt.Fprintf(r.complaint, "%s: %s%s\n", l.position(), l.err, l.ofEvent()); err != nil {
		return err
	}
	if r.bad > r.maxErrors {
		r.stopped = l.position()
		return errTooManyBad
	}
	return nil
}

// flush sends the pending lines and waits until the stream has stored them. A message that the
// publisher rejects (too long with its headers, or another state in a known revision) is a bad line
// like any other.
func (r *publishing) flush(ctx context.Context) error {
	for len(r.pending) > 0 {
		at, err := r.sendPending(ctx)
		var wrong *events.Error
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &wrong):
			if err := r.dropPending(ctx, at, wrong); err != nil {
				return err
			}
		default:
			return fmt.Errorf("stopped at %s: %w; publish the same files again to send the rest; if it stops again, "+
				"the broker's log or /projection of the server says why", r.pending[at].position(), err)
		}
	}
	return nil
}

// sendPending sends one batch, and removes from pending the lines that are dealt with. An
// error is about the pending line at the returned index.
func (r *publishing) sendPending(ctx context.Context) (int, error) {
	messages := make([]publish.Message, len(r.pending))
	for i := range r.pending {
		messages[i] = r.pending[i].message
	}
	sum, err := r.send(ctx, messages)
	r.done.Sent += sum.Sent
	r.done.Known += sum.Known
	r.done.Older += sum.Older
	r.done.LastSequence = max(r.done.LastSequence, sum.LastSequence)
	for _, i := range sum.Corrected {
		l := &r.pending[i]
		if _, err := fmt.Fprintf(r.complaint, "%s: sent, though revision %d has another state in the stream or on an earlier line: this one is true\n",
			l.position(), events.Revision(l.message.Event.Data)); err != nil {
			return i, err
		}
	}
	stored := len(r.pending)
	var failed *publish.MessageError
	if errors.As(err, &failed) {
		stored = min(sum.Done(), failed.Index) // later ones may be stored too: then they are known
	} else if err != nil {
		stored = 0
	}
	for i := range r.pending[:stored] {
		r.bar.Add(r.pending[i].size)
		r.lists.add(r.pending[i].message.Event.Data)
	}
	r.pending = append(r.pending[:0], r.pending[stored:]...)
	if failed == nil {
		return 0, err
	}
	return failed.Index - stored, err
}

// dropPending reports the pending line at an index as bad. If that exceeds the maximum, the lines
// before it are sent and those after it are not.
func (r *publishing) dropPending(ctx context.Context, at int, why error) error {
	bad := r.pending[at]
	bad.err = why
	r.good--
	err := r.refuse(&bad)
	if err == nil {
		r.pending = slices.Delete(r.pending, at, at+1)
		return nil
	}
	r.pending = r.pending[:at]
	return errors.Join(err, r.flush(ctx))
}

// badLines returns the error of a run with bad lines, with the remedy.
func (r *publishing) badLines() error {
	if r.stopped != "" {
		return fmt.Errorf("stopped at %s: correct the line and publish again, or allow more bad lines with --max-errors", r.stopped)
	}
	return fmt.Errorf("%s not sent: correct and publish them again", cli.Count(r.bad, "bad line"))
}

// summary returns the one line on standard output.
func (r *publishing) summary(dry bool) string {
	var s strings.Builder
	if dry {
		fmt.Fprintf(&s, "%s, %s; nothing sent (dry run)", cli.Count(r.good, "good line"), cli.Count(r.bad, "bad line"))
	} else {
		fmt.Fprintf(&s, "%d sent, %d already there, %d older, %s", r.done.Sent, r.done.Known, r.done.Older, cli.Count(r.bad, "bad line"))
	}
	if r.done.LastSequence > 0 {
		fmt.Fprintf(&s, "; last sequence %d", r.done.LastSequence)
	}
	if r.stopped != "" {
		fmt.Fprintf(&s, "; stopped at %s", r.stopped)
	}
	return s.String()
}

// listCounts counts what lines say, so that a mistake in an export is seen: all unverified, say.
type listCounts struct {
	of        map[events.List]*listCount
	views     int
	donations int

	long, thousands int // chat ids of more than 15 digits, and those of them that end in 000
	first           string
}

type listCount struct{ listed, verified, shown, private, removed int }

func (c *listCounts) list(l events.List) *listCount {
	if c.of == nil {
		c.of = map[events.List]*listCount{}
	}
	if c.of[l] == nil {
		c.of[l] = &listCount{}
	}
	return c.of[l]
}

func (c *listCounts) add(d events.Data) {
	switch d := d.(type) {
	case events.Entry:
		n := c.list(d.List)
		n.listed++
		if d.Verified {
			n.verified++
		}
		if d.Verified || !d.List.Trusted() {
			n.shown++
		}
		if d.Proofs.Private {
			n.private++
		}
		c.addChatID(d)
	case events.Delisting:
		c.list(d.List).removed++
	case events.Views:
		c.views++
	case events.Donation, events.DonationRemoval:
		c.donations++
	}
}

func (c *listCounts) addChatID(d events.Entry) {
	if len(d.ChatID) <= 15 || strings.Trim(d.ChatID, "0123456789") != "" {
		return
	}
	c.long++
	if strings.HasSuffix(d.ChatID, "000") {
		c.thousands++
		if c.first == "" {
			c.first = d.Subject().String()
		}
	}
}

// rounded returns a warning if more than one long chat id in a hundred ends in 000, where one in a
// thousand does by chance: a spreadsheet keeps 15 digits of a number, so the ids are other people's.
func (c *listCounts) rounded() string {
	if c.thousands*100 <= c.long {
		return ""
	}
	return fmt.Sprintf("warning: %d of %d long chat ids end in 000 (the first: %s), as a spreadsheet or JavaScript rounds numbers: "+
		"compare one with its source; if it is another, export the ids as text", c.thousands, c.long, c.first)
}

// String returns a line for each list that has lines.
func (c *listCounts) String() string {
	var s strings.Builder
	for _, l := range events.Lists() {
		if n := c.of[l]; n != nil {
			fmt.Fprintf(&s, "%s: %d listed (%d verified, %d shown, %d with private proofs), %d removed\n", l, n.listed, n.verified, n.shown, n.private, n.removed)
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

// idSet stores the event ids of one publish run as the first 16 bytes of their SHA-256, with a hash of
// their lines: about 40 bytes an event however long its id is, 400 MB for ten million lines. A 64-bit
// hash would refuse a good line once in a few hundred thousand runs of that size; this one, never.
type idSet map[[16]byte]uint64

// add reports whether the id is known, and with the same line.
func (s idSet) add(id string, line []byte) (known, same bool) {
	sum := sha256.Sum256([]byte(id))
	key := [16]byte(sum[:])
	digest := sha256.Sum256(line)
	hash := binary.LittleEndian.Uint64(digest[:])
	earlier, known := s[key]
	if !known {
		s[key] = hash
	}
	return known, earlier == hash
}
