package snapshots

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// Promise 4: Open loads what was saved, whatever the content and the batches, also if the process
// dies instead of closing the store.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		require.NoError(r, err)
		s, m, err := Open(context.Background(), Config{Path: filepath.Join(dir, "registry.db")})
		require.NoError(r, err)
		defer s.Close()
		for range rapid.IntRange(1, 4).Draw(r, "batches") {
			c := feed(m, drawData(r)...)
			require.NoError(r, s.Save(c))
		}
		again, loaded, err := Open(context.Background(), Config{Path: copyOf(t, s)})
		require.NoError(r, err)
		defer again.Close()
		if got, want := content(t, loaded.View()), content(t, m.View()); got != want {
			r.Fatalf("loaded\n%s\nsaved\n%s", got, want)
		}
		require.Equal(r, at(m.View().Sequence()), again.Checkpoint())
		if again.current().DataSet != s.current().DataSet || len(s.current().DataSet) != 32 {
			r.Fatalf("data set %q, saved %q", again.current().DataSet, s.current().DataSet)
		}
	})
}

// drawData draws events about few subjects, so that they replace and remove each other.
func drawData(r *rapid.T) []events.Data {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d-", "_e"})
	return rapid.SliceOfN(rapid.Custom(func(r *rapid.T) events.Data {
		list, id := eventstest.List().Draw(r, "list"), id.Draw(r, "id")
		switch rapid.IntRange(0, 5).Draw(r, "kind") {
		case 0:
			return events.Delisting{Revision: 1, List: list, EntryID: id}
		case 1:
			return events.Views{Revision: 1, List: list, EntryID: id, Views: eventstest.AnyViews().Draw(r, "views").Views}
		case 2:
			d := eventstest.AnyDonation().Draw(r, "donation")
			d.DonationID = id
			return d
		case 3:
			return events.DonationRemoval{Revision: 1, DonationID: id}
		}
		e := eventstest.AnyEntry().Draw(r, "entry")
		e.List, e.EntryID = list, id
		return e
	}), 1, 12).Draw(r, "data")
}

// A stream that was rewound takes the checkpoint back, and no state.
func TestSaveGoesBack(t *testing.T) {
	s, m := filled(t, 5)
	for _, sequence := range []uint64{3, 40} {
		require.NoError(t, s.Save(readmodel.Commit{Checkpoint: at(sequence), Digest: m.Digest()}))
		again, loaded := mustOpen(t, copyOf(t, s))
		require.Equal(t, at(sequence), again.Checkpoint())
		require.Equal(t, m.Digest(), loaded.Digest())
	}
}

// A Save that failed was lost, or was kept nevertheless. Either way the next one, with all the
// records again, leaves the right state (promise 4).
func TestFailedSave(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept=%v", kept), func(t *testing.T) {
			s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
			data := sample(60)
			require.NoError(t, s.Save(feed(m, data[:40]...)))
			before := s.saved
			second := feed(m, data[40:60]...)
			failSave(t, s, second, before, kept)
			if err := s.Probe(); err != nil {
				t.Errorf("Probe does not heal: %v", err)
			}
			third := feed(m, data[60:]...)
			third.Records = append(latestOnly(second, third), third.Records...)
			require.NoError(t, s.Save(third))
			_, loaded := mustOpen(t, copyOf(t, s))
			if content(t, loaded.View()) != content(t, m.View()) {
				t.Error("loaded content differs from the model")
			}
		})
	}
}

// A transaction that never ends, as after two panics of bbolt, keeps neither Save nor Close forever.
func TestCloseStuck(t *testing.T) {
	t.Parallel()
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	tx, err := s.db.Begin(true)
	require.NoError(t, err)
	db := s.db
	defer func() { _ = errors.Join(tx.Rollback(), db.Close()) }()
	s.attempt = new(s.saved)
	if err := s.Save(feed(m, sample(3)...)); !errors.Is(err, bolterrors.ErrTimeout) {
		t.Errorf("Save: %v", err)
	}
	s.db = db
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "not been closed") {
		t.Errorf("Close: %v", err)
	}
}

// failSave makes the store believe that saving c failed.
func failSave(t *testing.T, s *Store, c readmodel.Commit, before meta, kept bool) {
	t.Helper()
	if !kept {
		s.db.MaxSize = 1 // the next page that it needs is refused
		if err := s.Save(c); err == nil {
			t.Fatal("a Save without room succeeded")
		}
		if s.Checkpoint().Sequence != before.Checkpoint.Sequence {
			t.Error("a failed Save moved the checkpoint")
		}
		return
	}
	require.NoError(t, s.Save(c))
	attempt := s.saved
	s.saved, s.attempt = before, &attempt
	s.setFailed(errors.New("fsync: input/output error"))
}

// latestOnly is those records of a that b does not replace.
func latestOnly(a, b readmodel.Commit) []readmodel.Record {
	in := map[events.Subject]bool{}
	for _, r := range b.Records {
		in[r.Subject] = true
	}
	var out []readmodel.Record
	for _, r := range a.Records {
		if !in[r.Subject] {
			out = append(out, r)
		}
	}
	return out
}

// Save does not write to a store that somebody replaced after a failed write.
func TestReplacedAfterFailure(t *testing.T) {
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	require.NoError(t, s.Save(feed(m, sample(10)...)))
	failSave(t, s, feed(m, sample(20)...), s.saved, true)
	other := newMeta()
	require.NoError(t, s.db.Update(func(tx *bolt.Tx) error { return other.write(tx) }))
	for range 2 {
		if err := s.Save(readmodel.Commit{Checkpoint: at(1000), Digest: m.Digest()}); err == nil {
			t.Error("saved over a state that is neither the old nor the attempted one")
		}
	}
}

func TestProbe(t *testing.T) {
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	require.NoError(t, s.Save(feed(m, sample(10)...)))
	require.NoError(t, s.Probe())
	s.mu.Lock() // a transaction is at work
	if err := s.Probe(); err != nil {
		t.Error(err)
	}
	s.mu.Unlock()
	require.NoError(t, s.Close())
	if err := s.Probe(); !errors.Is(err, errClosed) {
		t.Errorf("Probe of a closed store: %v", err)
	}
}

// Tables are not half as large again as they need be where new ids come after the others, and not
// mostly empty where there is more to come in between.
func TestPagesFilled(t *testing.T) {
	t.Parallel()
	rnd := newRand()
	views := func(id string, n int64) events.Data {
		return events.Views{Revision: 1, List: events.Scammers, EntryID: id, Views: n}
	}
	ascending := func(i int) string { return fmt.Sprintf("%024d", i) }
	for name, c := range map[string]struct {
		data  func(i int) []events.Data
		least float64 // part of the leaf pages that is in use
	}{
		"ascending ids": {func(i int) []events.Data { return []events.Data{views(ascending(i), 1)} }, 0.85},
		"ascending ids, some late": {func(i int) []events.Data {
			if i%50 == 1 {
				return []events.Data{views(ascending(i-20)+"-late", 1)}
			}
			return []events.Data{views(ascending(i), 1)}
		}, 0.85},
		"random ids": {func(int) []events.Data { return []events.Data{views(fmt.Sprintf("%016x", rnd.Uint64()), 1)} }, 0.5},
		"ascending ids, and old records that grow": {func(i int) []events.Data {
			return []events.Data{views(ascending(i), 1), views(ascending(rnd.IntN(i+1)), int64(1)<<(i/50))}
		}, 0.5},
	} {
		s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
		const batch = 50
		for i := 0; i < 3000; i += batch {
			var data []events.Data
			for j := range batch {
				data = append(data, c.data(i+j)...)
			}
			require.NoError(t, s.Save(feed(m, data...)))
		}
		measured := 0
		err := s.db.View(func(tx *bolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
				if st := b.Stats(); st.KeyN > batch {
					measured++
					used := float64(st.LeafInuse) / float64(st.LeafAlloc)
					t.Logf("%s: %.2f", name, used)
					if used < c.least {
						t.Errorf("%s: %.2f of the leaf pages is in use, want %.2f", name, used, c.least)
					}
				}
				return nil
			})
		})
		if err != nil || measured != 1 {
			t.Fatalf("%s: %d tables, %v", name, measured, err)
		}
	}
}
