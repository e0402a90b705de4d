package textblock

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bits-and-blooms/bitset"
)

// TestScan compares blocks of random texts with a scan of the texts.
func TestScan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			b.WriteRune([]rune("abcdeął1ż")[r.IntN(9)])
		}
		return b.String()
	}
	words := func(n int) string {
		var some []string
		for range n {
			some = append(some, word())
		}
		return strings.Join(some, " ")
	}
	for round := range 40 {
		rows := 1 + r.IntN(600)
		if round == 0 {
			rows = Len // where some words are frequent
		}
		var texts []Text
		for range rows {
			texts = append(texts, Text{words(1 + r.IntN(2)), word(), words(r.IntN(12)), someKeys(r, word)})
		}
		b := New(texts)
		for range 60_000 / (rows + 100) {
			compare(t, b, texts, someNeedle(r, texts[r.IntN(len(texts))]))
			compare(t, b, texts, words(1+r.IntN(2)))
			compareKeys(t, b, texts, someKeys(r, word))
		}
	}
}

// someNeedle returns a part of what a row has, or of two of its texts.
func someNeedle(r *rand.Rand, of Text) string {
	all := []rune(of.Name + " " + of.ChatID + " " + of.Reason)
	from := r.IntN(len(all))
	return string(all[from:min(len(all), from+1+r.IntN(14))])
}

// someKeys returns no key, one or two.
func someKeys(r *rand.Rand, word func() string) string {
	keys := []string{word(), word()}
	return strings.Join(keys[:r.IntN(3)], "\n")
}

// compareKeys looks for a part of a key, for its start, its end, and all of it.
func compareKeys(t *testing.T, b *Block, texts []Text, key string) {
	t.Helper()
	key, _, _ = strings.Cut(key, "\n")
	for _, needle := range []string{key, "\n" + key, key + "\n", "\n" + key + "\n"} {
		if key == "" {
			return
		}
		got, want := bitset.New(Len), bitset.New(Len)
		b.Keys(needle, got)
		for i, text := range texts {
			if strings.Contains("\n"+text.Keys+"\n", needle) {
				want.Set(uint(i))
			}
		}
		if !got.Equal(want) {
			t.Fatalf("%d rows, key %q: found %d, want %d", len(texts), needle, got.Count(), want.Count())
		}
	}
}

func compare(t *testing.T, b *Block, texts []Text, needle string) {
	t.Helper()
	got, want, gotNames, wantNames := bitset.New(Len), bitset.New(Len), bitset.New(Len), bitset.New(Len)
	b.All(needle, func(row int) bool { return strings.Contains(texts[row].Reason, needle) }, got)
	b.Names(needle, gotNames)
	for i, text := range texts {
		if strings.Contains(text.Name, needle) || strings.Contains(text.ChatID, needle) {
			want.Set(uint(i))
			wantNames.Set(uint(i))
		}
		if strings.Contains(text.Reason, needle) {
			want.Set(uint(i))
		}
	}
	if !got.Equal(want) || !gotNames.Equal(wantNames) {
		t.Fatalf("%d rows, %q: found %d and %d by name, want %d and %d",
			len(texts), needle, got.Count(), gotNames.Count(), want.Count(), wantNames.Count())
	}
}
