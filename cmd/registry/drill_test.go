package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// deploy/operating.md, "Everything is lost but a snapshot file": the whole data directory is lost,
// the broker's store included. What the file has is published into the stream that a new server
// made, and the content is the file's to the last record.
func TestDrill(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	d.start()
	d.publish(drillEvents(t))
	want := d.projection()
	d.run("snapshot", "create", "--output="+d.file)
	tombstones := d.tombstones()
	d.stop()
	require.NoError(t, os.RemoveAll(d.data))
	if said := d.run("snapshot", "verify", d.file); !strings.Contains(said, want.Digest) {
		t.Errorf("the file says %q, not digest %s", said, want.Digest)
	}

	broker, err := eventstest.Address() // which the log names when the server is ready
	require.NoError(t, err)
	d.startUntil("listening", "--min-entries=250", "--embedded-nats-addr="+broker)
	d.run("recover", d.file, "--tombstones="+tombstones, "--nats-url=nats://"+broker, "--yes")
	d.run("ready", "--wait=60s")
	if got := d.settled(); got.Digest != want.Digest || got.Entries != want.Entries || got.StreamEpoch == want.StreamEpoch {
		t.Errorf("after the drill %v, before %v", got, want)
	}
	d.stop()
}

// A file that is restored without its stream is served, frozen, while the stream is being brought
// back; until it is accepted the new stream is not ours. (The page advises against it: the file's
// state is old.)
func TestDrillRestored(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	d.start()
	d.publish(drillEvents(t))
	want := d.projection()
	d.run("snapshot", "create", "--output="+d.file)
	d.stop()
	require.NoError(t, os.RemoveAll(d.data))
	d.run("snapshot", "restore", d.file, "--data-dir="+d.data)
	d.start()
	if got := d.projection(); got.Digest != want.Digest || got.LastError == nil || !strings.Contains(*got.LastError, "missing") {
		t.Errorf("restored, without a stream: %v", got)
	}
	d.run("recover", "--create-stream", "--nats-url="+d.NATS, "--yes")
	if got := d.settled(); got.Digest != want.Digest {
		t.Errorf("after the drill %v, before %v", got, want)
	}
	d.stop()
}

// "The stream was lost, erased, or came back from a backup": the server serves what it has, frozen,
// and publishes it into a new stream. Nothing is lost, and a repetition publishes nothing.
func TestDrillStreamsLost(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	d.start()
	d.publish(drillEvents(t))
	want := d.projection()
	d.stop()
	require.NoError(t, os.RemoveAll(filepath.Join(d.data, "broker")))
	d.start()
	recover := func(more ...string) string {
		return d.run(append([]string{"recover", "--nats-url=" + d.NATS}, more...)...)
	}
	if said := recover("--dry-run"); !strings.Contains(said, "the stream is missing; to publish: 300 listings") {
		t.Errorf("recover --dry-run says %q", said)
	}
	if got := d.projection(); got.Digest != want.Digest || got.Checkpoint != want.Checkpoint || got.LastError == nil ||
		!strings.Contains(*got.LastError, "registry recover") {
		t.Errorf("until it is accepted %v, before %v", got, want)
	}
	recover("--create-stream", "--yes")
	if got := d.settled(); got.Digest != want.Digest || got.Entries != want.Entries || got.StreamEpoch == want.StreamEpoch {
		t.Errorf("after the drill %v, before %v", got, want)
	}
	if said := recover("--yes"); !strings.Contains(said, "published: 0") {
		t.Errorf("a second recover says %q", said)
	}
	d.run("verify", "--nats-url="+d.NATS)
	d.stop()
}

// drill is a program and the path of a snapshot file outside its directory.
type drill struct {
	*program
	file string
}

func newDrill(t *testing.T) *drill {
	return &drill{newProgram(t, "--snapshot-every=0"), filepath.Join(t.TempDir(), "registry.snapshot")}
}

// tombstones exports the server's tombstones into a file next to the snapshot file, and returns its
// path.
func (d *drill) tombstones() string {
	d.t.Helper()
	path := d.file + ".tombstones"
	d.run("tombstones", "--output="+path)
	return path
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
	return ndjson(t, all...)
}
