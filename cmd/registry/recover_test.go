package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

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
