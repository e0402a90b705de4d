package ranked

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// files returns the names of the index's segments.
func (r *registry) files() map[string]bool {
	names, err := filepath.Glob(filepath.Join(filesOf(r.dir), "*.zap"))
	require.NoError(r.t, err)
	files := map[string]bool{}
	for _, name := range names {
		files[name] = true
	}
	return files
}

// The words of a delisted entry leave the disk after EraseAfter, also where bleve has no reason to
// merge, and the heap; everything else is still found; and a segment without deleted documents is
// left alone.
func TestErase(t *testing.T) {
	const word = "kanarekwanalizie"
	for _, erase := range []time.Duration{time.Hour, time.Millisecond} {
		t.Run(erase.String(), func(t *testing.T) {
			r := newRegistry(t, t.TempDir())
			r.erase = erase
			var all []events.Data
			for i := range 2000 { // too few for a text index, which has the word for longer
				all = append(all, entry(events.Scammers, fmt.Sprint("e", i), "Jan Kowalski", fmt.Sprint(900000000000000000+i), "nie oddał zaliczki", true))
			}
			all[1500] = entry(events.Scammers, "gone", "Kanarek", "910000000000000000", word, true)
			r.apply(all...)
			r.start()
			defer func() { r.stop() }()
			r.current().Release()
			var had map[string]bool
			eventstest.Until(r.t, func() bool { had = r.files(); return len(had) == 1 })

			r.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "gone"})
			r.current().Release()
			kept := func() (n int) {
				for name := range r.files() {
					if had[name] {
						n++
					}
				}
				return n
			}
			if erase == time.Hour { // bleve alone
				for i := range 40 {
					r.apply(entry(events.Scammers, fmt.Sprint("later", i), "Anna", fmt.Sprint(920000000000000000+i), "inna", true))
					r.current().Release()
				}
				if !eventstest.InHeap(t, word) {
					t.Error("the heap does not have the word: the test looks in the wrong place")
				}
				if kept() != 1 {
					t.Error("bleve removes the file by itself: there is nothing to do")
				}
				return
			}
			eventstest.Until(r.t, func() bool { return kept() == 0 && len(r.files()) == 1 })
			s := r.current()
			if got := total(t, s, r, "kowalski zaliczka"); got != 1999 {
				t.Errorf("%d entries are found", got)
			}
			if got := total(t, s, r, "kanarek"); got != 0 {
				t.Errorf("%d entries are found that were delisted", got)
			}
			s.Release() // it may hold what was there before
			r.apply(entry(events.Scammers, "later", "Anna", "920000000000000000", strings.Repeat("inna ", 20), true))
			r.current().Release()
			if !eventstest.LeavesHeap(t, word) {
				t.Error("the heap still has the word")
			}
			again := r.files()
			r.apply(events.Views{Revision: 1, List: events.Scammers, EntryID: "nobody", Views: 3})
			r.current().Release()
			for name := range again {
				if !r.files()[name] {
					t.Error("a segment without deleted documents was written again")
				}
			}
		})
	}
}

// total returns how many entries a question finds.
func total(t *testing.T, s *Searcher, r *registry, words string) int {
	t.Helper()
	page, err := s.Search(context.Background(), r.model.View(), readmodel.RankedQuery{Words: words, Limit: 1})
	require.NoError(t, err)
	return page.Total
}
