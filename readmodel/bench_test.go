package readmodel_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// filled is a model of n entries with a view total each, loaded in bulk, and the entries.
func filled(b *testing.B, n int) (*readmodel.Model, []events.Entry) {
	b.Helper()
	m, r := readmodel.New(), readmodel.NewRenderer()
	entries := eventstest.Entries(n, 42)
	m.BeginBulk()
	for i, e := range entries {
		seq := uint64(2*i + 1)
		views := events.Views{Revision: 1, List: e.List, EntryID: e.EntryID, Views: int64(i*7919) % 5000}
		m.Apply([]readmodel.Record{r.Render(seq, e), r.Render(seq+1, views)}, seq+1)
	}
	m.EndBulk()
	return m, entries
}

func BenchmarkRender(b *testing.B) {
	entries := eventstest.Entries(1000, 42)
	r := readmodel.NewRenderer()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Render(1, entries[i%len(entries)])
	}
}

// BenchmarkModel fills one model for each size and asks it everything: run parts of it with
// -bench 'Model/n=10000/List'.
func BenchmarkModel(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			m, entries := filled(b, n)
			runtime.GC()
			b.Run("ListSkip0", func(b *testing.B) { list(b, m, 0) })
			b.Run("ListSkip20000", func(b *testing.B) { list(b, m, 20_000) })
			b.Run("CheckByID", func(b *testing.B) { checkByID(b, m, entries) })
			b.Run("Scan", func(b *testing.B) { scan(b, m) })
			b.Run("Apply1", func(b *testing.B) { apply(b, m, entries, 1) })
			b.Run("Apply1000", func(b *testing.B) { apply(b, m, entries, 1000) })
			b.Run("Apply8192", func(b *testing.B) { apply(b, m, entries, 8192) })
			b.Run("ApplyViews1000", func(b *testing.B) { applyViews(b, m, entries) })
			b.Run("EndBulk", func(b *testing.B) { endBulk(b, m, n) })
		})
	}
}

// apply amends entries so that they move in two orders of three; ns/op is for one event.
func apply(b *testing.B, m *readmodel.Model, entries []events.Entry, size int) {
	r := readmodel.NewRenderer()
	seq := m.View().Sequence()
	b.ReportAllocs()
	for done := 0; done < b.N; done += size {
		b.StopTimer()
		records := make([]readmodel.Record, size)
		for i := range records {
			seq++
			e := entries[int(seq*7919)%len(entries)]
			e.Name += fmt.Sprint(seq % 10)
			e.ReportedAt = e.ReportedAt.AddDate(0, 0, int(seq%100))
			records[i] = r.Render(seq, e)
		}
		b.StartTimer()
		m.Apply(records, seq)
	}
}

func applyViews(b *testing.B, m *readmodel.Model, entries []events.Entry) {
	r := readmodel.NewRenderer()
	seq := m.View().Sequence()
	records := make([]readmodel.Record, 1000)
	b.ReportAllocs()
	for done := 0; done < b.N; done += len(records) {
		b.StopTimer()
		for i := range records {
			seq++
			e := entries[int(seq*7919)%len(entries)]
			records[i] = r.Render(seq, events.Views{Revision: 1, List: e.List, EntryID: e.EntryID, Views: int64(seq) % 9000})
		}
		b.StartTimer()
		m.Apply(records, seq)
	}
}

func list(b *testing.B, m *readmodel.Model, skip int) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = m.View().List(context.Background(), readmodel.ListQuery{List: events.Scammers, Skip: skip, Limit: 30})
	}
}

func checkByID(b *testing.B, m *readmodel.Model, entries []events.Entry) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := entries[i*7919%len(entries)]
		_, _ = m.View().Check(context.Background(), readmodel.CheckQuery{ID: e.ChatID})
	}
}

// scan is the search that any index has to beat.
func scan(b *testing.B, m *readmodel.Model) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = m.View().List(context.Background(), readmodel.ListQuery{List: events.Scammers, Search: "qqqq", Limit: 30})
	}
}

// endBulk is the sorting of a start; it also says what an entry takes in live memory.
func endBulk(b *testing.B, m *readmodel.Model, n int) {
	for b.Loop() {
		m.BeginBulk()
		m.EndBulk()
	}
	var ms runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&ms)
	b.ReportMetric(float64(ms.HeapAlloc)/float64(n), "B/entry")
}
