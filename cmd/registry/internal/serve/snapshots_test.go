package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
	"example.org/registry/snapshots"
)

// TestSnapshotTurn: serve makes a snapshot by itself once --snapshot-every has passed since the newest
// one, whichever replica made it, and none while nothing has changed.
func TestSnapshotTurn(t *testing.T) {
	t.Parallel()
	r := project(t)
	flags := r.cfg.Flags
	flags.SnapshotEvery = time.Hour
	flags.SnapshotKeep = 5
	k := &snapshotter{live: r.live, cfg: Config{Flags: flags, Logger: discard()}}
	k.bucket.Store(snapshots.NewBucket(r.js))
	turn := func(what string, wantNext time.Duration, wantMade uint64) {
		t.Helper()
		next, err := k.makeIfDue(t.Context())
		require.NoError(t, err, what)
		require.InDelta(t, wantNext.Seconds(), next.Seconds(), 60, what)
		require.Equal(t, wantMade, k.made.Load(), what)
	}
	turn("nothing to save", time.Minute, 0)
	r.publish(t, eventstest.Events(20, 1)...)
	turn("the first", time.Hour, 1)
	r.publish(t, eventstest.Events(20, 2)...)
	turn("not due", time.Hour, 1)
	k.cfg.SnapshotEvery = time.Millisecond
	turn("due", 0, 2)
	turn("nothing has changed", 0, 2)
}
