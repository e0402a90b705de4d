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
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/benchtext"
)

// wordy is a model of n entries whose reasons are words of a usual distribution, the first ones in
// most of them.
func wordy(n int) *readmodel.Model {
	r := benchtext.New(rand.New(rand.NewPCG(7, 7)))
	m := readmodel.New()
	m.BeginBulk()
	for first := 0; first < n; first += 1 << 14 {
		var some []events.Entry
		for i := first; i < min(n, first+1<<14); i++ {
			some = append(some, wordyEntry(r, i))
		}
		m.Apply(renderAll(uint64(first+1), some), uint64(first+len(some)))
	}
	m.EndBulk()
	readmodel.WaitForIndex(m)
	return m
}

func wordyEntry(r *benchtext.Texts, i int) events.Entry {
	e := events.Entry{
		Revision: 1,
		List:     events.Scammers, EntryID: fmt.Sprintf("e%07d", i), ChatID: fmt.Sprint(100000000000000000 + r.Int64N(8e17)),
		Name: r.Name(), Reason: r.Reason(), Verified: r.IntN(3) > 0, ReportID: "r", ReportedAt: time.Unix(1.6e9+r.Int64N(1e8), 0).UTC(),
	}
	if r.IntN(10) > 6 {
		e.List = events.Servers
	}
	return e
}

// renderAll renders entries of consecutive sequences, on all CPUs.
func renderAll(first uint64, es []events.Entry) []readmodel.Record {
	records, procs := make([]readmodel.Record, len(es)), runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	for p := range procs {
		group.Go(func() {
			render := readmodel.NewRenderer()
			for i := p; i < len(es); i += procs {
				records[i] = render.Render(first+uint64(i), es[i])
			}
		})
	}
	group.Wait()
	return records
}

// BenchmarkSearch asks a model what nobody asked before, and reports CPU time, which other processes do
// not disturb: run one size with -bench 'Search/n=100000/'.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			m := wordy(n)
			defer m.Close()
			v, r := m.View(), rand.New(rand.NewPCG(1, 2))
			var rare, words []string
			for range 64 {
				row := someRow(r, v)
				rare = append(rare, nameOf(row), row.ChatID()[:9])
				words = append(words, sixLetters(r, row))
			}
			b.Run("Rare", func(b *testing.B) { asking(b, v, rare) })
			b.Run("SixLetters", func(b *testing.B) { asking(b, v, words) })
			b.Run("HalfOfAll", func(b *testing.B) { asking(b, v, []string{"nitro"}) })
			b.Run("TwoCharacters", func(b *testing.B) { asking(b, v, strings.Fields("zł ka gh 12 xx ło")) })
			b.Run("OneCharacter", func(b *testing.B) { asking(b, v, strings.Fields("k w z 7 ł")) })
			for of, needle := range map[string]string{"Half": "nitro", "Word": words[0], "Rare": rare[0]} {
				b.Run("Page"+of, func(b *testing.B) { pages(b, v, needle) })
			}
			b.Run("Hostile", func(b *testing.B) { asking(b, v, hostile()) })
		})
	}
}

// BenchmarkCheck looks up names that nobody asked for before: of an entry, of nobody, and one of
// digits, which half of all chat ids could hold. It reports CPU time, which other processes
// do not disturb: run one size with -bench 'Check/n=1000000/'.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			m := wordy(n)
			defer m.Close()
			v, r := m.View(), rand.New(rand.NewPCG(1, 2))
			others := benchtext.New(rand.New(rand.NewPCG(8, 8)))
			b.Run("Listed", func(b *testing.B) { checking(b, v, func() string { return nameOf(someRow(r, v)) }) })
			b.Run("Disguised", func(b *testing.B) {
				checking(b, v, func() string {
					return strings.NewReplacer("a", "а", "e", "е", "o", "о").Replace(nameOf(someRow(r, v)))
				})
			})
			b.Run("Nobody", func(b *testing.B) { checking(b, v, others.Name) })
			b.Run("Word", func(b *testing.B) {
				checking(b, v, func() string { return strings.TrimRight(others.Name(), "0123456789") })
			})
			b.Run("Digits", func(b *testing.B) { checking(b, v, func() string { return fmt.Sprint(r.IntN(1e6)) }) })
		})
	}
}

func checking(b *testing.B, v *readmodel.View, name func() string) {
	names := make([]string, b.N)
	for i := range names {
		names[i] = name()
	}
	b.ReportAllocs()
	b.ResetTimer()
	begun := benchtext.CPUTime()
	for _, name := range names {
		if _, err := v.Check(context.Background(), readmodel.CheckQuery{Search: name}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((benchtext.CPUTime()-begun).Nanoseconds())/1000/float64(b.N), "processor-µs/op")
}

// someRow is a scammer's.
func someRow(r *rand.Rand, v *readmodel.View) *readmodel.Row {
	for {
		if row := readmodel.RowAt(v, 0, r.Uint32N(uint32(v.NumEntries(events.Scammers)))); row != nil {
			return row
		}
	}
}

func nameOf(row *readmodel.Row) string {
	name, _ := readmodel.FoldedTexts(row)
	return name
}

func sixLetters(r *rand.Rand, row *readmodel.Row) string {
	_, reason := readmodel.FoldedTexts(row)
	text := []rune(reason)
	at := r.IntN(len(text) - 6)
	return strings.TrimSpace(string(text[at : at+6])) // as parameters are
}

// hostile are queries that could make a search expensive.
func hostile() []string {
	return []string{strings.Repeat("a", 100), strings.Repeat("ka", 50), " ", "o", strings.Repeat("oszust ", 14), `.*[a-z]+(x|y)?$^\`,
		`name:"x" OR *:* ~2 ?`, strings.Repeat("konto nitro", 9), strings.Repeat("\u0301", 100), strings.Repeat("😀", 100)}
}

// asking reports the CPU time of a search, and of the slowest one.
func asking(b *testing.B, v *readmodel.View, needles []string) {
	var all, slowest time.Duration
	for i := range b.N {
		begun := benchtext.CPUTime()
		if _, err := v.List(context.Background(), readmodel.ListQuery{List: events.Scammers, Search: needles[i%len(needles)], Limit: 30}); err != nil {
			b.Fatal(err)
		}
		took := benchtext.CPUTime() - begun
		all, slowest = all+took, max(slowest, took)
	}
	b.ReportMetric(float64(all.Microseconds())/1000/float64(b.N), "processor-ms/op")
	b.ReportMetric(float64(slowest.Microseconds())/1000, "processor-ms-slowest")
}

// pages compares a page of a search with one of the same list without a search,
// in turns.
func pages(b *testing.B, v *readmodel.View, needle string) {
	const rounds = 100
	var took [2]time.Duration
	for range b.N {
		for i, search := range []string{"", needle} {
			begun := benchtext.CPUTime()
			for range rounds {
				_, _ = v.List(context.Background(), readmodel.ListQuery{List: events.Scammers, Search: search, Limit: 30})
			}
			took[i] += benchtext.CPUTime() - begun
		}
	}
	b.ReportMetric(float64(took[1].Nanoseconds())/float64(b.N*rounds), "ns/search")
	b.ReportMetric(float64(took[1])/float64(took[0]), "times-a-list")
}
