package serve

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel/indexing"
	"example.org/registry/snapshots/bucket"
)

// A snapshot from the future, where the broker's clock was set back, is no reason to wait.
func TestSnapshotDue(t *testing.T) {
	k := newSnapshotter(newLive(), &indexing.Pacer{}, Config{Logger: discard(), SnapshotEvery: time.Hour})
	newest := &bucket.Object{}
	newest.Manifest.Sequence = 10
	for _, c := range []struct {
		newest     *bucket.Object
		age        time.Duration
		checkpoint uint64
		want       time.Duration
	}{
		{nil, 0, 10, 0},
		{newest, 20 * time.Minute, 11, 40 * time.Minute},
		{newest, time.Hour, 11, 0},
		{newest, time.Hour, 10, time.Hour},
		{newest, -365 * 24 * time.Hour, 11, 0},
		{newest, -365 * 24 * time.Hour, 10, time.Hour},
	} {
		if got := k.notDue(c.newest, c.age, c.checkpoint); got != c.want {
			t.Errorf("%+v: not due for %s", c, got)
		}
	}
}

// serve makes a snapshot by itself once --snapshot-every has passed since the newest.
func TestSnapshotTurn(t *testing.T) {
	t.Parallel()
	r := project(t)
	publish := func(seed uint64) {
		seq := eventstest.Publish(t, r.js, eventstest.Events(20, seed)...)
		eventstest.Until(t, func() bool { p, _ := r.live.progress(); return p.Checkpoint == seq })
	}
	k := newSnapshotter(r.live, &indexing.Pacer{}, Config{DataDir: t.TempDir(), Logger: discard(), SnapshotEvery: time.Hour, SnapshotKeep: 5, StreamReplicas: 1})
	k.open(r.js)
	turn := func(what string, wantNext time.Duration, wantMade uint64) {
		t.Helper()
		next, err := k.makeIfDue(t.Context())
		if made := k.stats.numbers().count; err != nil || next > wantNext || next < wantNext-time.Minute || made != wantMade {
			t.Errorf("%s: again after %s, %d made, %v; want %s, %d made", what, next, made, err, wantNext, wantMade)
		}
	}
	publish(1)
	turn("the first", time.Hour, 1)
	publish(2)
	turn("not due", time.Hour, 1)
	k.every = 100 * time.Millisecond
	eventstest.Until(t, func() bool {
		_, age, err := k.newest(t.Context(), r.store.Checkpoint(), math.MaxUint64)
		return err == nil && age > k.every
	})

	turn("due", k.every, 2)
}

// TestSnapshotAtOnce: when the stream lacks what is known, a server saves what it knows without waiting
// for --snapshot-every; once, unless a snapshot has it already. Readers notice nothing, operators do.
func TestSnapshotAtOnce(t *testing.T) {
	t.Parallel()
	r := project(t)
	snapshotter := func() *snapshotter {
		k := newSnapshotter(r.live, &indexing.Pacer{}, Config{DataDir: t.TempDir(), Logger: discard(), SnapshotEvery: time.Hour, SnapshotKeep: 5, StreamReplicas: 1})
		k.open(r.js)
		return k
	}
	k, replica := snapshotter(), snapshotter()
	if _, err := k.makeIfDue(t.Context()); err != nil { // nothing to save yet
		t.Fatal(err)
	}
	publish := func(seed uint64) {
		seq := eventstest.Publish(t, r.js, eventstest.Events(20, seed)...)
		eventstest.Until(t, func() bool { p, _ := r.live.progress(); return p.Checkpoint == seq && p.Saved == seq })
	}
	publish(1)
	if _, err := k.makeIfDue(t.Context()); err != nil || k.stats.numbers().count != 1 {
		t.Fatal("no first snapshot: ", err)
	}
	publish(2)
	digest := r.live.View().Digest()
	stream, err := r.js.Stream(t.Context(), "REGISTRY")
	if err == nil {
		err = stream.Purge(t.Context())
	}
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.run(ctx) }()
	eventstest.Until(t, func() bool { return k.stats.numbers().count == 2 })
	cancel()
	require.NoError(t, <-ended)
	p, _ := r.live.progress()
	if n := k.stats.numbers().newest.Manifest.Sequence; n != p.Checkpoint {
		t.Errorf("the snapshot is at %d, not %d", n, p.Checkpoint)
	}
	if !replica.lacksMore() || replica.lacksMore() {
		t.Error("a replica does not wake once")
	}
	if next, err := replica.makeIfDue(t.Context()); err != nil || next < time.Minute || replica.stats.numbers().count != 0 {
		t.Errorf("a replica makes the same again: %d, %v", replica.stats.numbers().count, err)
	}
	if r.live.View().Digest() != digest || !strings.Contains(p.LastError, "registry recover") || p.Frozen() {
		t.Errorf("served %s, not %s; %+v", r.live.View().Digest(), digest, p)
	}
	lacking := strings.NewReader(fmt.Sprintf("# HELP registry_unpublished States that are known and shown, and that the stream lacks.\n"+
		"# TYPE registry_unpublished gauge\nregistry_unpublished %d\n", r.live.View().NumSubjects()))
	require.NoError(t, testutil.CollectAndCompare(newCollector(r.live, &k.stats, noLosses), lacking, "registry_unpublished"))
}
