package readmodel

import (
	"path/filepath"
	"testing"

	"example.org/registry/events"
	"example.org/registry/readmodel/gramindex"
)

// TestSmallBlocksMeanwhile: while a large block is being made, one part's changes do not wait for it; and both are
// right afterwards.
func TestSmallBlocksMeanwhile(t *testing.T) {
	m, r, seq := New(), NewRenderer(), uint64(0)
	change := func(list events.List, n, version int) {
		var records []Record
		for i := range n {
			e := numbered(i, version)
			e.List = list
			seq++
			records = append(records, r.Render(seq, e))
		}
		m.Apply(records, seq)
	}
	change(events.Scammers, 2*restEvery, 1)
	change(events.Legit, 200, 1)
	f := &feed{indexer: &Indexer{Dir: filepath.Join(t.TempDir(), "index")}, model: m}
	f.all(t)
	change(events.Scammers, 2*restEvery-1, 2) // so many that a small block will not do
	change(events.Legit, 40, 2)
	f.note(m.View())
	f.note(m.View()) // nothing more: what is needed is needed now
	scammers, legit := listIndex(events.Scammers), listIndex(events.Legit)
	if err := f.build(t.Context(), f.view, scammers, 0); err != nil {
		t.Fatal(err)
	}
	f.publish()
	if small := f.care[legit][0].stale; small != 40 {
		t.Errorf("the small block has %d slots, want 40", small)
	}
	if p := f.next.lists[scammers][0]; p.waits != 0 || p.newer != nil {
		t.Errorf("the large block lacks %d slots", p.waits)
	}
	for _, needle := range []string{"wersja 1", "wersja 2", "ktoś7", "1000039", "1000040"} {
		sameAsLook(t, m.View(), searchKey{scammers, gramindex.All, needle})
		sameAsLook(t, m.View(), searchKey{legit, gramindex.All, needle})
	}
}
