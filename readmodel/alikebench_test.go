package readmodel

import (
	"context"
	"fmt"
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// BenchmarkSimilar asks for similar names alone, without the literal search beside it; Scan is what
// it takes to ask every row instead.
func BenchmarkSimilar(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			v, entries := filledView(b, n)
			b.Run("Disguised", func(b *testing.B) {
				similarTo(b, v, func(i int) string { return disguises()[0].of(entries[i*7919%n].Name) })
			})
			b.Run("Clean", func(b *testing.B) {
				similarTo(b, v, func(i int) string { return entries[i*7919%n].Name })
			})
			b.Run("Short", func(b *testing.B) {
				similarTo(b, v, func(i int) string { return "m" + fmt.Sprint(i%10) })
			})
			b.Run("Hostile", func(b *testing.B) {
				long := ""
				for len([]rune(long)) < 100 {
					long += "\ufdfa"
				}
				similarTo(b, v, func(int) string { return long })
			})
			b.Run("Scan", func(b *testing.B) { scanAlike(b, v, entries) })
			b.ReportMetric(float64(v.likes.tree.count)/float64(n), "items/entry")
		})
	}
}

func filledView(b *testing.B, n int) (*View, []events.Entry) {
	b.Helper()
	m, r := New(), NewRenderer()
	entries := eventstest.Entries(n, 42)
	m.BeginBulk()
	for i, e := range entries {
		m.Apply([]Record{r.Render(uint64(i+1), e)}, uint64(i+1))
	}
	return m.EndBulk(), entries
}

func similarTo(b *testing.B, v *View, name func(i int) string) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		search := name(i)
		var found [numLists][]*Row
		if err := v.checkAlike(context.Background(), newLikeness(search, Fold(search)), &found); err != nil {
			b.Fatal(err)
		}
	}
}

func scanAlike(b *testing.B, v *View, entries []events.Entry) {
	for i := 0; b.Loop(); i++ {
		search := entries[i*7919%len(entries)].Name
		k := newLikeness(search, Fold(search))
		for _, l := range v.lists[:numAccused] {
			l.each(&ListQuery{}, 0, func(r *Row) bool { k.rank(r); return true })
		}
	}
}
