package readmodel

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// TestCachedTotals: the totals of a cached search follow verifications, proofs, delistings and
// entries in slots given back, several changes of one slot in a batch too, under every filter.
func TestCachedTotals(t *testing.T) {
	m, r, seq := New(), NewRenderer(), uint64(0)
	next := func(d events.Data) Record {
		seq++
		return r.Render(seq, d)
	}
	for round := range 40 {
		var records []Record
		for i := range 5 {
			e := numbered((round+i)%6, 1)
			e.Verified, e.Proofs.Private = (round+i)%3 == 0, (round*i)%4 == 1
			if (round*3+i)%7 == 0 {
				e.Reason = "nic"
			}
			records = append(records, next(e))
			if (round+2*i)%5 == 0 {
				records = append(records, next(events.Delisting{List: e.List, EntryID: e.EntryID}))
			}
		}
		v := m.Apply(records, seq)
		if got, want := filteredTotals(v), filteredTotals(forgetful(v)); got != want {
			t.Fatalf("round %d: %s, asked again %s", round, got, want)
		}
	}
	if hits := m.View().SearchCache().Hits; hits == 0 {
		t.Error("nothing was cached")
	}
}

// forgetful is v with an empty cache.
func forgetful(v *View) *View {
	other := *v
	other.text = newTextSearch()
	return &other
}

func filteredTotals(v *View) (totals string) {
	for status := StatusAll; status <= StatusRisk; status++ {
		for proofs := ProofsAll; proofs <= ProofsPrivate; proofs++ {
			p, err := v.List(context.Background(), ListQuery{List: events.Scammers, Search: "oszust", Status: status, Proofs: proofs, Limit: 1})
			totals += fmt.Sprint(p.Total, err, " ")
		}
	}
	return totals
}

// TestManySearches: ten thousand different searches in a row stay within the bound of the cache.
func TestManySearches(t *testing.T) {
	t.Parallel()
	m, r := New(), NewRenderer()
	for i := range 3000 {
		m.Apply([]Record{r.Render(uint64(i+1), numbered(i, i%7))}, uint64(i+1))
	}
	v, searches := m.View(), 5000
	if eventstest.RaceDetector {
		searches = 1000
	}
	var group sync.WaitGroup
	for g := range 2 {
		group.Go(func() {
			for i := range searches {
				q := ListQuery{List: events.Scammers, Search: fmt.Sprintf("%d%s", i, strings.Repeat("a", 1+i%90)), Limit: 30}
				if i%2 == g {
					q.Search = fmt.Sprint(i)
				}
				if _, err := v.List(context.Background(), q); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if w := m.text.cache.WeightedSize(); w > minCacheBytes {
		t.Errorf("%d bytes are cached", w)
	}
}

// TestChangeLog: what is further back than the log is said to be.
func TestChangeLog(t *testing.T) {
	l := changeLog{floor: 10}
	for seq := uint64(11); seq <= 10+5*maxChanges; seq++ {
		l.apply(change{sequence: seq, rowChange: rowChange{row: &Row{list: 1, slot: uint32(seq)}}})
	}
	last := uint64(10 + 5*maxChanges)
	for _, back := range []uint64{0, 1, maxChanges} {
		got, ok := l.since(last - back)
		if !ok || uint64(len(got)) != back || back > 0 && (got[0].sequence != last-back+1 || got[0].ref.List() != 1 || got[0].ref.Slot() != uint32(last-back+1)) {
			t.Errorf("%d back: %d changes, %v", back, len(got), ok)
		}
	}
	if _, ok := l.since(last - 2*maxChanges - 1); ok {
		t.Error("more was promised than is kept")
	}
}

// TestCacheGrows: the cache of results grows with the registry, up to its share of the memory
// limit, and shrinks with it.
func TestCacheGrows(t *testing.T) {
	m := New()
	for _, c := range []struct {
		entries int
		want    uint64
	}{{0, minCacheBytes}, {100_000, minCacheBytes}, {1_000_000, 240_000_000}, {1_010_000, 240_000_000}, {200_000, 48_000_000}, {0, minCacheBytes}} {
		if m.text.fit(c.entries); m.text.bound != c.want || m.text.cache.GetMaximum() != c.want {
			t.Errorf("%d entries: %d bytes, the cache %d; want %d", c.entries, m.text.bound, m.text.cache.GetMaximum(), c.want)
		}
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	if m.text.fit(1_000_000); m.text.bound != 1<<30/cacheShare {
		t.Errorf("%d bytes with a memory limit of 1 GiB", m.text.bound)
	}
}
