package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector"
	"example.org/registry/projector/recovery"
	"example.org/registry/readmodel"
)

// verifyReads is how often a differing record is read before it is reported.
const verifyReads = 3

// verifyCmd compares a running server with a replay of its stream.
type verifyCmd struct {
	cli.StreamFlags
	cli.AdminFlags
}

// Help returns the help beyond the flags.
func (verifyCmd) Help() string {
	return "Replays the stream, in this process, into an empty read model up to the very sequence at which the server lists its records, so the " +
		"result is right even while events arrive. Tombstones are compared too. A record that differs is read twice more before it is reported; where the server's state is the newer one, the stream lacks it. Takes as much memory as the server's read model " +
		"and changes nothing. Exit status 1 if anything differs."
}

// Run prints how many records were compared, and the differing ones.
func (c *verifyCmd) Run(p *process) error {
	if err := c.Check(); err != nil {
		return err
	}
	nc, js, err := c.Open(p.ctx, "registry verify")
	if err != nil {
		return err
	}
	defer nc.Close()
	stream := leader.Stream{JS: js, Name: string(c.Stream)}
	r := startReplay(js, stream.Name)
	defer r.stop()
	if err := r.catchUp(p.ctx, p.stderr); err != nil {
		return cli.Interrupted(p.ctx, err)
	}
	found, err := c.compare(p.ctx, r)
	if err != nil {
		return cli.Interrupted(p.ctx, err)
	}
	return c.report(p, stream, found)
}

// report prints the findings. If there are any, it returns an error.
func (c *verifyCmd) report(p *process, stream leader.Stream, found findings) error {
	if len(found.differ) == 0 {
		_, err := fmt.Fprintf(p.stdout, "%s compared at sequence %d: no difference; digest %s\n",
			cli.Count(found.records, "record"), found.sequence, found.digest)
		return err
	}
	lacks, err := c.unpublished(p.ctx, stream, found.differ)
	if err != nil {
		return err
	}
	remedy := "publish what the stream lacks (registry recover)"
	for _, name := range slices.Sorted(maps.Keys(found.differ)) {
		what := found.differ[name]
		if subject, err := events.ParseSubject(name); err == nil && lacks[subject] {
			what = unpublished
		} else {
			remedy = "rebuild the read model (registry rebuild)"
		}
		if _, err := fmt.Fprintln(p.stdout, cli.Printable(name)+": "+what); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d of %s differ at sequence %d: %s", len(found.differ), cli.Count(found.records, "record"), found.sequence, remedy)
}

// unpublished returns the subjects among those that differ whose state in the server wins against
// what the stream has, read again.
func (c *verifyCmd) unpublished(ctx context.Context, stream leader.Stream, differ map[string]string) (map[events.Subject]bool, error) {
	subjects := map[events.Subject]bool{}
	for name := range differ {
		if subject, err := events.ParseSubject(name); err == nil {
			subjects[subject] = true
		}
	}
	of := func(k events.Subject) bool { return subjects[k] }
	body, err := c.Ask(ctx, http.MethodGet, "/export")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	server, lines := recovery.States{}, bufio.NewScanner(body)
	lines.Buffer(nil, events.MaxPayload+64<<10)
	for lines.Scan() {
		if e, err := events.Decode(lines.Bytes()); err == nil && of(e.Data.Subject()) {
			server.Add(readmodel.State{Data: e.Data})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("export of the server: %w", err)
	}
	has, err := recovery.Scan(ctx, stream, of)
	if err != nil {
		return nil, err
	}
	lacks := map[events.Subject]bool{}
	wins, _ := recovery.Wins(maps.Values(server), has.States.Data)
	for _, s := range wins {
		lacks[s.Data.Subject()] = true
	}
	return lacks, nil
}

// findings are the outcome of a comparison.
type findings struct {
	records  int // compared, including those that only one side has
	sequence uint64
	digest   string
	differ   map[string]string // the difference, by subject
}

// compare reads the server's records up to three times, and keeps the records that differ every
// time.
func (c *verifyCmd) compare(ctx context.Context, r *replay) (found findings, err error) {
	for read := range verifyReads {
		now, err := c.compareOnce(ctx, r)
		if err != nil {
			return findings{}, err
		}
		if read > 0 {
			maps.DeleteFunc(now.differ, func(subject, _ string) bool { return found.differ[subject] == "" })
		}
		if found = now; len(found.differ) == 0 {
			break
		}
	}
	return found, nil
}

// compareOnce pauses the replay, requests the server's records at that sequence or later, and lets
// the replay continue exactly to their sequence.
func (c *verifyCmd) compareOnce(ctx context.Context, r *replay) (findings, error) {
	at := r.projector.PauseAt(0)
	defer r.projector.Resume()
	list, err := c.serverRecords(ctx, at.Sequence)
	if err != nil {
		return findings{}, err
	}
	defer list.close()
	if list.head.Epoch != at.StreamEpoch {
		return findings{}, fmt.Errorf("the server follows another stream: epoch %s, not %s; correct --nats-url or --admin-addr",
			cli.Printable(list.head.Epoch), at.StreamEpoch)
	}
	own, err := r.inventoryAt(ctx, list.head.Sequence)
	if err != nil {
		return findings{}, err
	}
	return list.compare(own)
}

// recordList is the server's response to /records, read line by line.
type recordList struct {
	head  admin.RecordsHeader
	body  io.ReadCloser
	lines *bufio.Scanner
}

// serverRecords requests the server's records at a sequence of at least atLeast. The caller closes
// the list.
func (c *verifyCmd) serverRecords(ctx context.Context, atLeast uint64) (*recordList, error) {
	body, err := c.Ask(ctx, http.MethodGet, fmt.Sprint("/records?sequence=", atLeast))
	if err != nil {
		return nil, err
	}
	l := &recordList{body: body, lines: bufio.NewScanner(body)}
	if err := l.readHead(); err != nil {
		l.close()
		return nil, fmt.Errorf("records of the server: %w", err)
	}
	return l, nil
}

func (l *recordList) close() { _ = l.body.Close() } // errors were reported while reading

func (l *recordList) readHead() error {
	if !l.lines.Scan() {
		return errors.Join(errors.New("nothing"), l.lines.Err())
	}
	if err := json.Unmarshal(l.lines.Bytes(), &l.head); err != nil {
		return err
	}
	if l.head.Projection != readmodel.ProjectionVersion || l.head.Render != readmodel.RenderVersion {
		return errors.New("made by another version of this program; verify with the server's own")
	}
	return nil
}

// The kinds of difference.
const (
	differs    = "differs"
	onlyStream = "in the stream, not in the server"
	onlyServer = "in the server, not in the stream"

	unpublished = "the server's state is the newer one, and the stream lacks it: registry recover publishes it"
)

// compare reads the list and compares it with own, which must have the same sequence.
func (l *recordList) compare(own *readmodel.Inventory) (findings, error) {
	want := maps.Collect(own.All())
	found := findings{sequence: own.Sequence, digest: own.Digest.String(), differ: map[string]string{}}
	if err := l.read(&found, want); err != nil {
		return findings{}, fmt.Errorf("records of the server: %w", err)
	}
	for subject := range want {
		found.records++
		found.differ[subject] = onlyStream
	}
	if len(found.differ) == 0 && l.head.Digest != found.digest {
		found.differ["digest"] = "all records are the same, but the server's sum of them is " + l.head.Digest + ", not " + found.digest
	}
	return found, nil
}

// read compares the server's records with the wanted ones, which it removes from want.
func (l *recordList) read(found *findings, want map[string]readmodel.Digest) error {
	for l.lines.Scan() {
		at := strings.LastIndexByte(l.lines.Text(), ' ')
		if at < 0 {
			return fmt.Errorf("%q is not a record", l.lines.Text())
		}
		subject, hash := l.lines.Text()[:at], l.lines.Text()[at+1:]
		found.records++
		expected, there := want[subject]
		switch {
		case !there:
			found.differ[subject] = onlyServer
		case expected.String() != hash:
			found.differ[subject] = differs
		}
		delete(want, subject)
	}
	if err := l.lines.Err(); err != nil {
		return err
	}
	if found.records != l.head.Records {
		return fmt.Errorf("%d of %d arrived", found.records, l.head.Records)
	}
	return nil
}

const (
	// besideWithin bounds the time in which the replay reaches the server's sequence.
	besideWithin = 30 * time.Second
	// goesOnWithin bounds the time in which the next message of the replay arrives.
	goesOnWithin = 20 * time.Second
)

// replay is a read model of the stream, made in this process.
type replay struct {
	model     *readmodel.Model
	projector *projector.Projector
	following *task.Task
}

func startReplay(js jetstream.JetStream, stream string) *replay {
	r := &replay{model: readmodel.New()}
	r.projector = projector.New(projector.Config{JetStream: js, Stream: stream, Model: r.model, ReadOnly: true})
	r.following = task.Go(context.Background(), r.projector.Run)
	return r
}

func (r *replay) stop() {
	_ = r.following.Stop() // what it has read is known
	r.model.Close()
}

// catchUp waits until everything that the stream had has been applied.
func (r *replay) catchUp(ctx context.Context, terminal io.Writer) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	shown := cli.NewProgress(terminal, "replaying", "events")
	for last, done := time.Now(), uint64(0); ; {
		p := r.projector.Progress()
		if p.Done > done {
			last, done = time.Now(), p.Done
		}
		switch {
		case p.CaughtUp:
			return nil
		case p.Frozen():
			return errors.New(p.LastError)
		case time.Since(last) > goesOnWithin:
			return fmt.Errorf("the replay of the stream does not go on: %s", cmp.Or(p.LastError, "the broker does not answer"))
		case p.Total > 0:
			shown.Set(int64(p.Done), int64(p.Total))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.following.Done():
			return r.following.Wait()
		case <-tick.C:
		}
	}
}

// inventoryAt lets the replay continue to sequence and returns its records there.
func (r *replay) inventoryAt(ctx context.Context, sequence uint64) (inv *readmodel.Inventory, err error) {
	ctx, cancel := context.WithTimeout(ctx, besideWithin)
	defer cancel()
	r.projector.PauseAt(sequence)
	if _, err := r.model.Await(ctx, sequence); err != nil {
		return nil, fmt.Errorf("the replay does not reach sequence %d, where the server stands: %w", sequence, err)
	}
	r.projector.Inspect(func(m *readmodel.Model) { inv = m.Inventory() })
	if inv.Sequence != sequence {
		return nil, fmt.Errorf("the replay stands at %d, not at %d", inv.Sequence, sequence) // cannot happen
	}
	return inv, nil
}
