package readmodel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// sizes are the design point, and a size that must work. Run one with -bench 'Model/n=100000$'.
func sizes() []int { return []int{100_000, 1_000_000} }

// wordyEntries are n entries that have words of a usual distribution as reasons, the first words in most
// of them.
func wordyEntries(n int) []events.Entry {
	r := eventstest.NewTexts(rand.New(rand.NewPCG(7, 7)))
	entries := make([]events.Entry, n)
	for i := range entries {
		entries[i] = events.Entry{
			Revision: 1, List: events.Scammers, EntryID: fmt.Sprintf("e%07d", i), ChatID: fmt.Sprint(100000000000000000 + r.Int64N(8e17)),
			Name: r.Name(), Reason: r.Reason(), Verified: r.IntN(3) > 0, ReportID: "r", ReportedAt: time.Unix(1.6e9+r.Int64N(1e8), 0).UTC(),
		}
		if r.IntN(10) > 6 {
			entries[i].List = events.Servers
		}
	}
	return entries
}

// load is a start: it renders the states of a store on all CPUs, and loads those before meanwhile.
func load(entries []events.Entry) *readmodel.Model {
	m := readmodel.New()
	m.BeginBulk()
	const batch = 1 << 12
	var previous []readmodel.Record
	for first := 0; first < len(entries); first += batch {
		some := entries[first:min(len(entries), first+batch)]
		records, procs := make([]readmodel.Record, len(some)), runtime.GOMAXPROCS(0)
		var group sync.WaitGroup
		group.Go(func() { m.Load(previous, uint64(len(entries))) })
		for p := range procs {
			group.Go(func() {
				render := readmodel.NewRenderer()
				for i := p; i < len(some); i += procs {
					records[i] = render.Render(uint64(first+i+1), some[i])
				}
			})
		}
		group.Wait()
		previous = records
	}
	m.Load(previous, uint64(len(entries)))
	m.EndBulk()
	readmodel.WaitForIndex(m)
	return m
}

// BenchmarkStart reports the time of a start, its CPU time for an entry, which other processes disturb less,
// and the memory of an entry after it: at most 2 s and 1,500 bytes at the smaller size, and 20 s at the larger.
func BenchmarkStart(b *testing.B) {
	for _, n := range sizes() {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			entries := wordyEntries(n)
			before := heapBytes()
			var m *readmodel.Model
			begun := eventstest.CPUTime()
			for b.Loop() {
				m = load(entries)
				m.Close()
			}
			b.ReportMetric(float64((eventstest.CPUTime()-begun).Microseconds())/float64(n)/float64(b.N), "cpu-µs/entry")
			b.ReportMetric(float64(heapBytes()-before)/float64(n), "B/entry")
			runtime.KeepAlive(m)
			runtime.KeepAlive(entries)
		})
	}
}

func heapBytes() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // the first leaves the content of pools
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkModel fills one model for each size and asks it everything. Searches and checks are of texts
// that nobody has asked for before: at most 3 ms of CPU time at the smaller size, and 30 at the larger.
func BenchmarkModel(b *testing.B) {
	for _, n := range sizes() {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			entries := wordyEntries(n)
			m := load(entries)
			defer m.Close()
			v, r, others := m.View(), rand.New(rand.NewPCG(1, 2)), eventstest.NewTexts(rand.New(rand.NewPCG(8, 8)))
			some := func() *events.Entry { return &entries[r.IntN(n)] }
			for _, skip := range []int{0, 20_000} {
				measure(b, fmt.Sprint("List/Skip", skip), func() error { return list(v, "", skip) })
			}
			measure(b, "Check/ID", func() error { return check(v, readmodel.CheckQuery{ID: some().ChatID}) })
			for name, text := range map[string]func() string{
				"Listed":    func() string { return some().Name },
				"Disguised": func() string { return strings.NewReplacer("a", "а", "e", "е", "o", "о").Replace(some().Name) },
				"Nobody":    others.Name,
				"Word":      func() string { return strings.TrimRight(others.Name(), "0123456789") },
				"Digits":    func() string { return fmt.Sprint(r.IntN(1e6)) },
			} {
				measure(b, "Check/"+name, func() error { return check(v, readmodel.CheckQuery{Search: text()}) })
			}
			for name, text := range map[string]func() string{
				"Rare":          func() string { return some().Name },
				"PartOfID":      func() string { return some().ChatID[:9] },
				"SixLetters":    func() string { return sixLetters(r, some().Reason) },
				"HalfOfAll":     func() string { return "nitro" },
				"TwoCharacters": oneOf(r, "zł", "ka", "gh", "12", "xx", "ło"),
				"OneCharacter":  oneOf(r, "k", "w", "z", "7", "ł"),
				"Hostile": oneOf(r, strings.Repeat("a", 100), strings.Repeat("ka", 50), "o", strings.Repeat("oszust ", 14), `.*[a-z]+(x|y)?$^\`,
					`name:"x" OR *:* ~2 ?`, strings.Repeat("konto nitro", 9), strings.Repeat("\u0301", 100), strings.Repeat("😀", 100)),
			} {
				measure(b, "Search/"+name, func() error { return list(v, text(), 0) })
			}
			for _, size := range []int{1, 1000} {
				b.Run(fmt.Sprint("Apply", size), func(b *testing.B) { apply(b, m, entries, size) })
			}
		})
	}
}

func list(v *readmodel.View, search string, skip int) error {
	_, err := v.List(context.Background(), readmodel.ListQuery{List: events.Scammers, Search: search, Skip: skip, Limit: 30})
	return err
}

func check(v *readmodel.View, q readmodel.CheckQuery) error {
	_, err := v.Check(context.Background(), q)
	return err
}

func sixLetters(r *rand.Rand, reason string) string {
	text := []rune(reason)
	start := r.IntN(len(text) - 6)
	return strings.TrimSpace(string(text[start : start+6])) // as parameters are
}

func oneOf(r *rand.Rand, texts ...string) func() string {
	return func() string { return texts[r.IntN(len(texts))] }
}

// measure reports the CPU time of a query: other processes do not disturb it.
func measure(b *testing.B, name string, query func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		begun := eventstest.CPUTime()
		for b.Loop() {
			if err := query(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((eventstest.CPUTime()-begun).Nanoseconds())/1e6/float64(b.N), "cpu-ms/op")
	})
}

// apply amends entries so that they move in two orders of three. It reports the longest pause, which is at
// most 10 ms; ns/op is for one event.
func apply(b *testing.B, m *readmodel.Model, entries []events.Entry, size int) {
	r, seq, longest := readmodel.NewRenderer(), m.View().Sequence(), time.Duration(0)
	for done := 0; done < b.N; done += size {
		b.StopTimer()
		records := make([]readmodel.Record, size)
		for i := range records {
			seq++
			e := entries[int(seq*7919)%len(entries)]
			e.Revision = int64(seq)
			e.Name += fmt.Sprint(seq % 10)
			e.ReportedAt = e.ReportedAt.AddDate(0, 0, int(seq%100))
			records[i] = r.Render(seq, e)
		}
		b.StartTimer()
		begun := time.Now()
		m.Apply(records, seq)
		longest = max(longest, time.Since(begun))
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
}

func BenchmarkRender(b *testing.B) {
	entries, r := wordyEntries(1000), readmodel.NewRenderer()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Render(1, entries[i%len(entries)])
	}
}
