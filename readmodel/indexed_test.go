package readmodel

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.org/registry/events"
	"example.org/registry/readmodel/gramindex"
)

// numbered is an entry of a list that spans blocks.
func numbered(n, version int) events.Entry {
	return events.Entry{
		List: events.Scammers, EntryID: fmt.Sprintf("e%06d", n), ChatID: fmt.Sprint(1_000_000 + n),
		Name: fmt.Sprintf("ktoś%d", n%97), Reason: fmt.Sprintf("wersja %d oszust", version), ReportID: "r",
	}
}

// TestIndexedBlocks: a list of several blocks, changed all over while it is indexed, old views
// included: every answer is that of a look at every row.
func TestIndexedBlocks(t *testing.T) {
	const n = 2*gramindex.BlockLen + 700
	m, r, seq := New(), NewRenderer(), uint64(0)
	m.BeginBulk()
	for i := range n {
		seq++
		m.Apply([]Record{r.Render(seq, numbered(i, 1))}, seq)
	}
	m.EndBulk()
	f := &feed{indexer: &Indexer{Dir: filepath.Join(t.TempDir(), "index"), Slack: 64}, model: m}
	views := []*View{m.View()}
	for round := 2; round < 8; round++ {
		v := m.View()
		var records []Record
		for i := round; i < n; i += 97 {
			seq++
			records = append(records, r.Render(seq, numbered(i, round)))
		}
		seq++
		records = append(records, r.Render(seq, events.Delisting{List: events.Scammers, EntryID: fmt.Sprintf("e%06d", round*3001)}))
		views = append(views, m.Apply(records, seq))
		for range round % 4 { // blocks of the first are out of date when they are made; from the second on some are small
			if _, err := f.step(context.Background(), v); err != nil {
				t.Fatal(err)
			}
			v = m.View()
		}
		for _, v := range views[max(0, len(views)-3):] {
			for _, needle := range []string{"oszust", "wersja 1 ", fmt.Sprintf("ja %d o", round), "a 1", fmt.Sprintf("a %d", round), "ktoś96", "1016", "ś9", "7"} {
				sameAsLook(t, v, searchKey{0, gramindex.All, needle})
				sameAsLook(t, v, searchKey{0, gramindex.Names, needle})
			}
		}
	}
	if parts := f.next.lists[0]; parts[1].block == nil || parts[0].newer == nil {
		t.Errorf("not every kind of block was made: %+v", parts)
	}
}

// TestViewBeforeIndex: an entry that was gone before the index began is found in a view that still shows it.
func TestViewBeforeIndex(t *testing.T) {
	m, r := New(), NewRenderer()
	m.BeginBulk()
	m.Apply([]Record{r.Render(1, numbered(1, 1))}, 1)
	old := m.EndBulk()
	m.Apply([]Record{r.Render(2, events.Delisting{List: events.Scammers, EntryID: numbered(1, 1).EntryID})}, 2)
	f := &feed{indexer: &Indexer{Dir: filepath.Join(t.TempDir(), "index"), Slack: 1}, model: m}
	f.all(t)
	sameAsLook(t, old, searchKey{0, gramindex.All, "oszust"})
}

// sameAsLook compares what the index finds with a look at every row. Empty slots do not count.
func sameAsLook(t *testing.T, v *View, k searchKey) {
	t.Helper()
	got, err := v.find(context.Background(), k)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := v.look(context.Background(), k)
	slots := got.slots.Clone()
	slots.AndNot(want)
	slots.Iterate(func(slot uint32) bool {
		if v.lists[k.list].rows.get(slot) != nil {
			t.Errorf("%q at %d: slot %d is found and does not contain it", k.needle, v.sequence, slot)
		}
		return true
	})
	if got.tally != v.lists[k.list].tally(got.slots) {
		t.Errorf("%q at %d: tally %v", k.needle, v.sequence, got.tally)
	}
	if want.AndNot(got.slots); !want.IsEmpty() {
		t.Fatalf("%q at %d: %d slots are not found", k.needle, v.sequence, want.GetCardinality())
	}
}

// TestSearchGone: a search whose reader has gone ends without an answer, with an index and without.
func TestSearchGone(t *testing.T) {
	m, r := New(), NewRenderer()
	for i := range 10 {
		m.Apply([]Record{r.Render(uint64(i+1), numbered(i, 1))}, uint64(i+1))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ask := func() {
		if _, err := m.View().List(ctx, ListQuery{List: events.Scammers, Search: "oszust", Limit: 1}); err == nil {
			t.Error("an answer for nobody")
		}
	}
	ask()
	f := &feed{indexer: &Indexer{Dir: filepath.Join(t.TempDir(), "index"), Slack: 1}, model: m}
	f.all(t)
	ask()
	if m.accelerator.remembered.EstimatedSize() > 0 {
		t.Error("half an answer is remembered")
	}
}

// TestHostileSearches: searches made to be expensive, and ten thousand different ones in a row, are
// exact, and what is remembered of them stays within its bound.
func TestHostileSearches(t *testing.T) {
	m, f := wordy(t, 3000)
	f.indexer.Slack = 1
	f.all(t)
	v := m.View()
	for _, needle := range hostile() {
		for list := range numLists {
			sameAsLook(t, v, searchKey{list, gramindex.All, Fold(needle)})
		}
	}
	var group sync.WaitGroup
	for g := range 2 {
		group.Go(func() {
			for i := range 5000 {
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
	if w := m.accelerator.remembered.WeightedSize(); w > rememberedBytes {
		t.Errorf("%d bytes are remembered", w)
	}
}
