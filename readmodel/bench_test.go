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
		views := events.Views{List: e.List, EntryID: e.EntryID, Views: int64(i*7919) % 5000}
		m.Apply([]readmodel.Record{r.Render(seq, e), r.Render(seq+1, views)}, seq+1)
	}
	m.EndBulk()
	return m, entries
}

func sizes(b *testing.B, f func(b *testing.B, m *readmodel.Model, entries []events.Entry)) {
	for _, n := range []int{10_000, 1_000_000} {
		var m *readmodel.Model
		var entries []events.Entry
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if m == nil {
				m, entries = filled(b, n)
				runtime.GC()
			}
			b.ReportAllocs()
			b.ResetTimer()
			f(b, m, entries)
		})
	}
}

func BenchmarkRender(b *testing.B) {
	entries := eventstest.Entries(1000, 42)
	r := readmodel.NewRenderer()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Render(1, entries[i%len(entries)])
	}
}

// BenchmarkApply amends entries one batch at a time; ns/op is for one event.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1, 1000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			sizes(b, func(b *testing.B, m *readmodel.Model, entries []events.Entry) {
				r := readmodel.NewRenderer()
				seq := m.View().Sequence()
				for done := 0; done < b.N; done += size {
					b.StopTimer()
					records := make([]readmodel.Record, size)
					for i := range records {
						seq++
						e := entries[int(seq*7919)%len(entries)]
						e.Name += "x"
						e.ReportedAt = e.ReportedAt.AddDate(0, 0, 1)
						records[i] = r.Render(seq, e)
					}
					b.StartTimer()
					m.Apply(records, seq)
				}
			})
		})
	}
}

func BenchmarkApplyViews(b *testing.B) {
	sizes(b, func(b *testing.B, m *readmodel.Model, entries []events.Entry) {
		r := readmodel.NewRenderer()
		seq := m.View().Sequence()
		records := make([]readmodel.Record, 1000)
		for done := 0; done < b.N; done += len(records) {
			b.StopTimer()
			for i := range records {
				seq++
				e := entries[int(seq*7919)%len(entries)]
				records[i] = r.Render(seq, events.Views{List: e.List, EntryID: e.EntryID, Views: int64(seq) % 9000})
			}
			b.StartTimer()
			m.Apply(records, seq)
		}
	})
}

func BenchmarkList(b *testing.B) {
	for _, skip := range []int{0, 20_000} {
		b.Run(fmt.Sprintf("skip=%d", skip), func(b *testing.B) {
			sizes(b, func(b *testing.B, m *readmodel.Model, _ []events.Entry) {
				var buf []byte
				for b.Loop() {
					q := readmodel.ListQuery{List: events.Scammers, Skip: skip, Limit: 30}
					p, _ := m.View().List(context.Background(), q)
					buf = p.AppendJSON(buf[:0])
				}
			})
		})
	}
}

func BenchmarkCheckByID(b *testing.B) {
	sizes(b, func(b *testing.B, m *readmodel.Model, entries []events.Entry) {
		var buf []byte
		for i := 0; b.Loop(); i++ {
			e := entries[i*7919%len(entries)]
			c, _ := m.View().Check(context.Background(), readmodel.CheckQuery{ID: e.ChatID})
			buf = c.AppendJSON(buf[:0])
		}
	})
}

// BenchmarkScan is the search that any index has to beat, and the check by name.
func BenchmarkScan(b *testing.B) {
	sizes(b, func(b *testing.B, m *readmodel.Model, _ []events.Entry) {
		for b.Loop() {
			_, _ = m.View().List(context.Background(), readmodel.ListQuery{List: events.Scammers, Search: "qqqq", Limit: 30})
		}
	})
}

// BenchmarkEndBulk is the sorting of a start; it also says what an entry takes in memory.
func BenchmarkEndBulk(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			m, _ := filled(b, n)
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
				m.BeginBulk()
				m.EndBulk()
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/entry")
			runtime.KeepAlive(m)
		})
	}
}
