package gramindex

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTwinBleve: blocks and bleve find the same for a needle that Exact vouches for; for a longer one
// both find every text that contains it, and the same once that is verified.
func TestTwinBleve(t *testing.T) {
	dir, outer := open(t), t
	word := rapid.StringOfN(rapid.SampledFrom([]rune("aąbc1 😀\n\U0010FFFF")), 0, 14, -1)
	rapid.Check(t, func(t *rapid.T) {
		docs := make([]doc, rapid.IntRange(1, 40).Draw(t, "docs"))
		for i := range docs {
			docs[i] = doc{word.Draw(t, "names"), word.Draw(t, "rest")}
		}
		x := newBleve(t, outer.TempDir())
		half := rapid.IntRange(0, len(docs)).Draw(t, "first batch")
		for _, batch := range [][2]int{{0, half}, {half, len(docs)}} {
			if err := x.add(batch[0], docs[batch[0]:batch[1]], nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.snapshot(); err != nil {
			t.Fatal(err)
		}
		var b Builder
		for i, d := range docs {
			b.Add(uint16(i), d.text(), len(d.names))
		}
		block := keep(t, dir, &b)
		for range 10 {
			if needle := strings.ReplaceAll(word.Draw(t, "needle"), "\n", ""); needle != "" {
				checkTwins(t, block, x, docs, needle)
			}
		}
	})
}

func checkTwins(t *rapid.T, block *Block, x *bleveIndex, docs []doc, needle string) {
	for _, text := range []Text{All, Names} {
		var ours []uint32
		for _, slot := range find(t, block, text, needle) {
			ours = append(ours, uint32(slot))
		}
		theirs, err := x.find(text, needle, nil)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(theirs)
		if !Exact(needle) {
			ours, theirs = verified(docs, text, needle, ours), verified(docs, text, needle, theirs)
		}
		if !slices.Equal(ours, theirs) {
			t.Fatalf("%d %q: %v, bleve %v", text, needle, ours, theirs)
		}
		if want := verified(docs, text, needle, every(docs)); !slices.Equal(ours, want) {
			t.Fatalf("%d %q: both %v, but %v contain it", text, needle, ours, want)
		}
	}
}

func every(docs []doc) (numbers []uint32) {
	for i := range docs {
		numbers = append(numbers, uint32(i))
	}
	return numbers
}

// verified keeps the numbers of the documents whose text contains needle.
func verified(docs []doc, text Text, needle string, numbers []uint32) (kept []uint32) {
	for _, n := range numbers {
		in := docs[n].text()
		if text == Names {
			in = docs[n].names
		}
		if strings.Contains(in, needle) {
			kept = append(kept, n)
		}
	}
	return kept
}
