package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// refusedToRecover runs recover on a stream that may not change, and returns how it ends.
func refusedToRecover(t *testing.T, of, target *program, args ...string) string {
	t.Helper()
	before, digest := target.projection().LastSequence, target.projection().Digest
	_, err := of.try(append([]string{"recover", "--yes", "--nats-url=" + target.NATS}, args...)...)
	require.Error(t, err)
	target.until("it has seen its end", func() bool { return target.projection().CaughtUp })
	require.Equal(t, before, target.projection().LastSequence, "something was sent")
	require.Equal(t, digest, target.projection().Digest)
	return err.Error()
}

// What is foreign never gets into a stream: that of a test server, of a demonstration, of a copy for
// tests, or of another registry's file; nor does last week's file bring anything back while all is well.
func TestRecoverForeign(t *testing.T) {
	t.Parallel()
	production, test := startProgram(t, "--snapshot-every=0"), startProgram(t, "--snapshot-every=0")
	production.fill(30, 1)
	week := filepath.Join(production.dir, "week.snapshot")
	production.run("snapshot", "create", "--output="+week)
	gone := eventstest.Entries(30, 1)[3]
	production.publish(ndjson(t, delisting(gone.List, gone.EntryID, 1_000_000)))
	test.fill(25, 2)
	said := refusedToRecover(t, test, production)
	require.Contains(t, said, "the server is well on another stream")
	require.Contains(t, said, "--adopt "+production.projection().StreamEpoch)
	other := filepath.Join(test.dir, "other.snapshot")
	test.run("snapshot", "create", "--output="+other)
	require.Contains(t, refusedToRecover(t, production, production, other, "--without-tombstones"), "shares no history")
	require.Contains(t, refusedToRecover(t, production, production, week), "--without-tombstones")
	epoch := production.projection().StreamEpoch
	require.Contains(t, production.run("recover", week, "--without-tombstones", "--yes", "--nats-url="+production.NATS), "published: 0")
	require.Equal(t, epoch, production.projection().StreamEpoch)

	demo := newProgram(t)
	demo.flags = []string{"--demo", "--data-dir=" + demo.data}
	demo.start()
	said = refusedToRecover(t, demo, production)
	require.Contains(t, said, "a demonstration is never mixed")
	require.NotContains(t, said, "--adopt")
	for _, p := range []*program{production, test, demo} {
		p.stop()
	}
}

// All is lost but a snapshot and the file of tombstones, and the timer runs before the operator: the
// file stays whole, and nobody who was delisted comes back (the two worst of the drills).
func TestRecoverFromFiles(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	people := drillPeople(20)
	d.start()
	d.publish(ndjson(t, listings(people, 1)...))
	d.run("snapshot", "create", "--output="+d.file)
	w := world{here: map[string]bool{}}
	var gone []events.Event
	for i, e := range people {
		if i < 7 {
			gone = append(gone, delisting(e.List, e.EntryID, 2))
		} else {
			w.here[string(e.List)+"/"+e.EntryID] = true
		}
	}
	d.publish(ndjson(t, gone...))
	file := d.tombstones()
	w.gone = d.stones()
	d.stop()
	require.NoError(t, os.RemoveAll(d.data))

	d.start()
	_, err := d.try("tombstones", "--output="+file)
	require.ErrorContains(t, err, "stays as it is")
	nats := "--nats-url=" + d.NATS
	_, err = d.try("recover", d.file, "--yes", nats)
	require.ErrorContains(t, err, "--tombstones FILE")
	said := d.run("recover", d.file, "--tombstones="+file, "--yes", nats)
	require.True(t, strings.Contains(said, "published: 20") && strings.Contains(said, "removals after"), said)
	d.applied(21) // with the marker
	d.isExactly(people, w)
	require.Contains(t, d.run("recover", d.file, "--tombstones="+file, nats), "published: 0")
	d.run("tombstones", "--output="+file) // of its history now
	require.Contains(t, d.run("recover", nats), "published: 0")
	d.stop()
}
