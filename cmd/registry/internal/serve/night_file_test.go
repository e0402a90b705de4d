package serve

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/internal/recovery"
	"example.org/registry/events"
)

// The worst night without a server: only a snapshot and a file of tombstones are left, each taken at
// any moment before a disaster, or before another night. What the files and the stream know for the
// newest about an entry is never overruled by something that shows it. A stream that nothing happened
// to stays as it is, if its own tombstones are kept.
func TestWorstNightFromFiles(t *testing.T) {
	seeds := []uint64{7, 10, 108, 117} // with all kinds of files, streams and disasters
	if first := *nightSeed; first != 0 {
		seeds = seeds[:0]
		for n := range uint64(*nights) {
			seeds = append(seeds, first+n)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			newNight(t, seed).runFromFiles()
		})
	}
}

// files are the operator's backups, with the events that each covers.
type files struct {
	snapshot   *recovery.Known
	inSnapshot map[events.Subject]published
	tombstones recovery.Withdrawals
	named      map[events.Subject]published // by tombstones: the events that withdrew the entry
}

func (n *night) runFromFiles() {
	f := &files{}
	if n.rng.IntN(2) == 0 {
		n.publish(20, true)
		n.reached()
		n.keepSnapshot(f)
		n.keepTombstones(f)
		n.run()
	}
	steps := []func(){n.backup, n.backup, func() { n.keepSnapshot(f) }, func() { n.keepTombstones(f) }}
	n.rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		n.publish(1+n.rng.IntN(20), true)
		n.reached()
		step()
	}
	n.publish(1+n.rng.IntN(20), true)
	n.reached()
	whole := n.rng.IntN(3) == 0
	if !whole {
		n.disaster()
	}
	if n.rng.IntN(4) == 0 {
		n.tell("a file that somebody has written")
		f.tombstones.History, f.tombstones.Sequence = "by-hand", 0
	}
	if n.rng.IntN(4) == 0 {
		n.tell("the broker's clock was ahead once")
		f.snapshot.At.NewestTime = f.snapshot.At.MessageTime.AddDate(1, 0, 0)
	}
	f.snapshot.Add(f.tombstones)
	n.publishLost(f.snapshot)
	if left := n.plan(f.snapshot); len(left.Changes) > 0 || left.Begins() {
		n.t.Errorf("a second recovery would publish %d events, begins a history: %v", len(left.Changes), left.Begins())
	}
	n.compareWith(f, whole && f.tombstones.History == n.server.live.View().Epoch())
}

// keepSnapshot keeps a snapshot, or perhaps an older one.
func (n *night) keepSnapshot(f *files) {
	if f.snapshot != nil && n.rng.IntN(3) == 0 {
		n.tell("the snapshot is of another night")
		return
	}
	f.snapshot, f.inSnapshot = n.snapshot(), maps.Clone(n.known)
	n.tell("snapshot at %d", f.snapshot.At.Sequence)
}

// keepTombstones keeps a file of tombstones, or perhaps an older one.
func (n *night) keepTombstones(f *files) {
	if f.named != nil && n.rng.IntN(3) == 0 {
		n.tell("the tombstones are of another night")
		return
	}
	all, err := n.server.live.tombstones()
	require.NoError(n.t, err)
	f.tombstones = recovery.Withdrawals{All: all.All, History: all.Epoch, Sequence: all.Sequence}
	f.named = map[events.Subject]published{}
	for _, t := range all.All {
		f.named[t.Subject()] = n.known[t.Subject()]
	}
	n.tell("tombstones at %d", all.Sequence)
}

// compareWith holds what a new server makes of the stream against all that was known.

func (n *night) compareWith(f *files, whole bool) {
	n.t.Helper()
	v := n.replica()
	streamed := map[events.Subject]published{}
	for _, p := range n.stream {
		streamed[p.data.Subject()] = p
	}
	subjects := map[events.Subject]bool{}
	for _, states := range []map[events.Subject]published{f.inSnapshot, f.named, streamed} {
		for k := range states {
			subjects[k] = k.Kind == events.KindEntry
		}
	}
	for k, entry := range subjects {
		if !entry {
			continue
		}
		newest, withdrawn := streamed[k], false
		for _, states := range []map[events.Subject]published{f.inSnapshot, f.named} {
			p, ok := states[k]
			if ok && p.number > newest.number {
				newest = p
			}
			withdrawn = withdrawn || ok && weight(p.data) > 0
		}
		row := v.Entry(k.List, k.ID)
		name := ""
		if row != nil {
			name, _, _ = row.Text()
		}
		e, _ := newest.data.(events.Entry)
		switch {
		case row != nil && weight(newest.data) > 0:
			n.t.Errorf("%s is listed as %q, and should not be: %T", k, name, newest.data)
		case row == nil && weight(newest.data) == 0 && (whole || !withdrawn):
			n.t.Errorf("%s is not listed, and should be as %q", k, e.Name)
		case row != nil && whole && name != e.Name:
			n.t.Errorf("%s is listed as %q, want %q", k, name, e.Name)
		}
	}
}
