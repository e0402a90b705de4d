package readmodel

import (
	"runtime"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// A delisted entry leaves the heap with the last view that shows it
// (deploy/erasing.md), and the text index after a while.
func TestDelistedLeavesTheHeap(t *testing.T) {
	const word = "kanarekwmodelu"
	m, r := New(), NewRenderer()
	defer m.Close()
	m.indexer.limit, m.indexer.forget = 0, time.Millisecond // each change is indexed
	m.indexer.timer.Reset(time.Millisecond)
	seq := uint64(0)
	apply := func(data ...events.Data) {
		for _, d := range data {
			seq++
			m.Apply([]Record{r.Render(seq, d)}, seq)
		}
	}
	for _, e := range eventstest.Entries(100, 1) {
		apply(e)
	}
	canary := events.Entry{Revision: 1, List: events.Scammers, EntryID: "canary", ChatID: "1", Name: word, Reason: word, ReportID: "r", ReportedAt: eventstest.Start()}
	apply(canary)
	if !isInHeap(t, word) {
		t.Fatal("the word is not in the heap: the test looks in the wrong place")
	}
	m.indexer.tasks.Wait()
	m.writing.Lock()
	m.indexer.limit = 1 << 30 // nothing is, but what is to be forgotten
	m.writing.Unlock()
	apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "canary"})
	for _, e := range eventstest.Entries(100, 1) {
		e.Reason = "a longer reason, so that what is used again for each event has another text"
		apply(e)
	}
	if !leavesHeap(t, word) {
		t.Error("the heap still has the entry")
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(r)
}
