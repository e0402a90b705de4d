package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// deploy/operating.md, "Everything is lost but a snapshot file": the whole data directory is lost,
// the broker's store included. What the file has is published into the stream that a new server
// made, and the content is the file's to the last record.
func TestDrill(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	first := d.start("first.log")
	d.publish(first, drillEvents(t))
	want := d.projection(first)
	d.run("snapshot", "create", "--admin-addr="+first.Admin, "--output="+d.file)
	tombstones := d.tombstones(first)
	first.stop(t)
	if err := os.RemoveAll(d.data); err != nil {
		t.Fatal(err)
	}
	if said := d.run("snapshot", "verify", d.file); !strings.Contains(said, want.Digest) {
		t.Errorf("the file says %q, not digest %s", said, want.Digest)
	}

	broker, err := eventstest.Address() // which the log names when the server is ready
	if err != nil {
		t.Fatal(err)
	}
	second := d.startUntil("listening", "second.log", "--min-entries=250", "--embedded-nats-addr="+broker)
	d.run("recover", d.file, "--tombstones="+tombstones, "--nats-url=nats://"+broker, "--admin-addr="+second.Admin, "--yes")
	d.run("ready", "--wait=60s", "--admin-addr="+second.Admin)
	if got := d.settled(second); got.Digest != want.Digest || got.Entries != want.Entries || got.StreamEpoch == want.StreamEpoch {
		t.Errorf("after the drill %v, before %v", got, want)
	}
	second.stop(t)
}

// A file that is restored without its stream is served, frozen, while the stream is being brought
// back; until it is accepted the new stream is not ours. (The page advises against it: the file's
// state is old.)
func TestDrillRestored(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	first := d.start("first.log")
	d.publish(first, drillEvents(t))
	want := d.projection(first)
	d.run("snapshot", "create", "--admin-addr="+first.Admin, "--output="+d.file)
	first.stop(t)
	if err := os.RemoveAll(d.data); err != nil {
		t.Fatal(err)
	}
	d.run("snapshot", "restore", d.file, "--data-dir="+d.data)
	second := d.start("second.log")
	if got := d.projection(second); got.Digest != want.Digest || got.LastError == nil || !strings.Contains(*got.LastError, "missing") {
		t.Errorf("restored, without a stream: %v", got)
	}
	d.run("recover", "--create-stream", "--nats-url="+second.NATS, "--admin-addr="+second.Admin, "--yes")
	if got := d.settled(second); got.Digest != want.Digest {
		t.Errorf("after the drill %v, before %v", got, want)
	}
	second.stop(t)
}

// "The stream was lost, erased, or came back from a backup": the server serves what it has, frozen,
// and publishes it into a new stream. Nothing is lost, and a repetition publishes nothing.
func TestDrillStreamsLost(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	first := d.start("first.log")
	d.publish(first, drillEvents(t))
	want := d.projection(first)
	first.stop(t)
	if err := os.RemoveAll(filepath.Join(d.data, "broker")); err != nil {
		t.Fatal(err)
	}
	second := d.start("second.log")
	recover := func(more ...string) string {
		return d.run(append([]string{"recover", "--nats-url=" + second.NATS, "--admin-addr=" + second.Admin}, more...)...)
	}
	if said := recover("--dry-run"); !strings.Contains(said, "the stream is missing; to publish: 300 listings") {
		t.Errorf("recover --dry-run says %q", said)
	}
	if got := d.projection(second); got.Digest != want.Digest || got.Checkpoint != want.Checkpoint || got.LastError == nil ||
		!strings.Contains(*got.LastError, "registry recover") {
		t.Errorf("until it is accepted %v, before %v", got, want)
	}
	recover("--create-stream", "--yes")
	if got := d.settled(second); got.Digest != want.Digest || got.Entries != want.Entries || got.StreamEpoch == want.StreamEpoch {
		t.Errorf("after the drill %v, before %v", got, want)
	}
	if said := recover("--yes"); !strings.Contains(said, "published: 0") {
		t.Errorf("a second recover says %q", said)
	}
	d.run("verify", "--nats-url="+second.NATS, "--admin-addr="+second.Admin)
	second.stop(t)
}

// tombstones keeps the server's tombstones beside the snapshot file, and returns their file.
func (d *drill) tombstones(of drilled) string {
	d.t.Helper()
	path := d.file + ".tombstones"
	d.run("tombstones", "--admin-addr="+of.Admin, "--output="+path)
	return path
}

// drill is a server of the real program and the commands to it.
type drill struct {
	t          *testing.T
	dir        string
	data, file string
	env        []string // of the servers, beside the test's own
}

func newDrill(t *testing.T) *drill {
	dir := t.TempDir()
	return &drill{t: t, dir: dir, data: filepath.Join(dir, "data"), file: filepath.Join(t.TempDir(), "registry.snapshot")}
}

type drilled struct {
	*child
	logLine
}

func (d *drill) start(log string) drilled { return d.startUntil("ready", log) }

// startUntil starts a server and waits for a line of its log, "listening" or "ready".
func (d *drill) startUntil(line, log string, flags ...string) drilled {
	d.t.Helper()
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	c, err := startChild(self, d.dir, filepath.Join(d.dir, log), append(os.Environ(), d.env...),
		append([]string{"--data-dir=" + d.data, "--snapshot-every=0"}, flags...)...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.end(os.Kill) })
	l, ok := c.await(line)
	if !ok {
		text, _ := os.ReadFile(c.log)
		d.t.Fatalf("not %s: %s", line, text)
	}
	return drilled{c, l}
}

func (c drilled) stop(t *testing.T) {
	t.Helper()
	if status := c.end(syscall.SIGTERM); status != 0 {
		text, _ := os.ReadFile(c.log)
		t.Fatalf("exit status %d: %s", status, text)
	}
}

// run runs a command inside the test and returns what it prints.
func (d *drill) run(args ...string) string { return d.runWith(nil, args...) }

func (d *drill) runWith(stdin io.Reader, args ...string) string {
	d.t.Helper()
	out, err := d.tryWith(stdin, args...)
	if err != nil {
		d.t.Fatalf("%v: %v", args, err)
	}
	return out
}

// try is run for a command that may fail.
func (d *drill) try(args ...string) (string, error) { return d.tryWith(nil, args...) }

func (d *drill) tryWith(stdin io.Reader, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	err := run(ctx, args, func(string) string { return "" }, stdin, &out, &complaint)
	if err != nil {
		err = fmt.Errorf("%w; %s", err, complaint.String())
	}
	return out.String(), err
}

// publish publishes and waits until the server has applied everything.
func (d *drill) publish(to drilled, ndjson string) {
	d.t.Helper()
	said := d.runWith(strings.NewReader(ndjson), "publish", "--nats-url="+to.NATS, "-")
	_, last, _ := strings.Cut(said, "last sequence ")
	want, err := strconv.ParseUint(strings.TrimSpace(last), 10, 64)
	if err != nil {
		d.t.Fatalf("publish says %q", said)
	}
	for until := time.Now().Add(patience); d.projection(to).Checkpoint < want; {
		if time.Now().After(until) {
			d.t.Fatalf("checkpoint %d is not reached", want)
		}
	}
}

// drillEvents are entries, view totals of listed and other entries, and donations.
func drillEvents(t *testing.T) string {
	t.Helper()
	all := eventstest.Events(300, 3)
	for i, e := range eventstest.Entries(50, 3) {
		all = append(all, events.Event{ID: fmt.Sprint("v", i), Source: "/drill", Type: events.TypeViewsCounted,
			Data: events.Views{List: e.List, EntryID: e.EntryID, Views: int64(i)}})
	}
	all = append(all,
		events.Event{ID: "nobody", Source: "/drill", Type: events.TypeViewsCounted,
			Data: events.Views{List: events.Legit, EntryID: "not-listed", Views: 7}},
		events.Event{ID: "gone", Source: "/drill", Type: events.TypeDelisted,
			Data: events.Delisting{List: events.Scammers, EntryID: "gone"}},
		events.Event{ID: "donation", Source: "/drill", Type: events.TypeDonationUpdated,
			Data: events.Donation{DonationID: "d1", Status: events.DonationPending, Amount: "1.50", Currency: "PLN",
				CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}})
	var out strings.Builder
	for _, e := range all {
		line, err := events.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	return out.String()
}

type drillState struct {
	Digest, StreamEpoch      string
	Checkpoint, LastSequence uint64
	IndexSequence            uint64
	Entries                  struct{ Scammers, Servers, Legit int }
	LastError                *string
}

func (p drillState) String() string {
	text, _ := json.Marshal(p)
	return string(text)
}

func (d *drill) projection(of drilled) (p drillState) {
	d.t.Helper()
	status, body, err := ask("http://" + of.Admin + "/projection")
	if err == nil && status == http.StatusOK {
		err = json.Unmarshal(body, &p)
	}
	if err != nil || status != http.StatusOK {
		d.t.Fatalf("%d %s %v", status, body, err)
	}
	return p
}

// settled returns the projection once nothing is wrong: after a rebuild the index of ranked search
// is rebuilt first.
func (d *drill) settled(of drilled) drillState {
	d.t.Helper()
	for until := time.Now().Add(patience); ; {
		p := d.projection(of)
		if p.LastError == nil {
			return p
		}
		if time.Now().After(until) {
			d.t.Fatalf("not settled: %v", p)
		}
	}
}
