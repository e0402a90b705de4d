package readmodel

import (
	"fmt"
	"testing"

	"example.org/registry/events"
)

// numbered is an entry with a common word.
func numbered(n, version int) events.Entry {
	return events.Entry{
		Revision: int64(version),
		List:     events.Scammers, EntryID: fmt.Sprintf("e%06d", n), ChatID: fmt.Sprint(1_000_000 + n),
		Name: fmt.Sprintf("ktoś%d", n%97), Reason: fmt.Sprintf("wersja %d oszust", version), ReportID: "r",
	}
}

// TestIndexFollows: blocks are made once many rows have changed, at the end of a bulk too, and none after
// Close, which can be called twice.
func TestIndexFollows(t *testing.T) {
	m, r, seq := New(), NewRenderer(), uint64(0)
	apply := func(version, from, to int) {
		var records []Record
		for n := from; n < to; n++ {
			seq++
			records = append(records, r.Render(seq, numbered(n, version)))
		}
		m.Apply(records, seq)
	}
	indexed := func(version, want, wantFresh int) {
		t.Helper()
		m.indexer.tasks.Wait()
		fresh := 0
		for _, b := range m.View().lists[0].texts.blocks {
			fresh += len(b.fresh)
		}
		p, err := m.View().List(t.Context(), ListQuery{List: events.Scammers, Search: fmt.Sprintf("wersja %d oszust", version), Limit: 1})
		if err != nil || p.Total != want || fresh != wantFresh {
			t.Errorf("version %d: %d rows, %d fresh, %v; want %d and %d", version, p.Total, fresh, err, want, wantFresh)
		}
	}
	apply(1, 0, 2000)
	indexed(1, 2000, 2000)
	apply(1, 2000, 3000)
	indexed(1, 3000, 0)
	apply(2, 0, 2000)
	indexed(1, 1000, 2000)
	apply(3, 1900, 2100)
	indexed(2, 1900, 0)

	m.BeginBulk()
	apply(3, 0, 3000)
	m.EndBulk()
	indexed(3, 3000, 0)

	m.Close()
	m.Close()
	apply(4, 0, 3000)
	indexed(4, 3000, 3000)
}
