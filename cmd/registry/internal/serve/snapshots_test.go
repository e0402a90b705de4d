package serve

import (
	"testing"
	"time"

	"example.org/registry/events/eventstest"
)

// TestSnapshotWaits: in an import no snapshot is made until it has ended, or is another interval old.
func TestSnapshotWaits(t *testing.T) {
	t.Parallel()
	r := project(t)
	eventstest.Publish(t, r.js, eventstest.Events(20, 1)...)
	until(t, func() bool { return r.live.View().Sequence() == 20 })
	k := newSnapshotter(r.live, Config{DataDir: t.TempDir(), Logger: discard(), SnapshotEvery: time.Hour, SnapshotKeep: 5, StreamReplicas: 1})
	k.open(r.js)
	for _, c := range []struct {
		importing bool
		running   time.Duration
		next      time.Duration
		made      uint64 // so far
	}{
		{true, time.Minute, snapshotGrace, 0},
		{true, 59 * time.Minute, snapshotGrace, 0},
		{true, time.Hour, time.Hour, 1},
	} {
		next, err := k.turn(t.Context(), c.importing, c.running)
		if made := k.stats.numbers().count; err != nil || next != c.next || made != c.made {
			t.Errorf("importing %v, after %s: again after %s, %d made, %v; want %s, %d made", c.importing, c.running, next, made, err, c.next, c.made)
		}
	}
	k.every = time.Nanosecond // so the one that was made is two intervals old
	eventstest.Publish(t, r.js, eventstest.Events(20, 2)...)
	until(t, func() bool { return r.live.View().Sequence() == 40 })
	if _, err := k.turn(t.Context(), true, time.Hour); err != nil || k.stats.numbers().count != 2 {
		t.Errorf("%d made, %v, in an import that is as old as two intervals", k.stats.numbers().count, err)
	}
}

// TestChangeRate: what has been dealt with since the last call, a second.
func TestChangeRate(t *testing.T) {
	t.Parallel()
	r := project(t)
	rate := r.live.changeRate()
	began := time.Now()
	eventstest.Publish(t, r.js, eventstest.Events(200, 1)...)
	until(t, func() bool { return r.live.View().Sequence() == 200 })
	if got, most := rate(), 200/time.Since(began).Seconds(); got <= 0 || got < most/2 {
		t.Errorf("%.0f changes a second, want some %.0f", got, most)
	}
	if got := rate(); got != 0 {
		t.Errorf("%.0f changes a second, and there was none", got)
	}
}
