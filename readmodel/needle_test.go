package readmodel

import (
	"math/rand/v2"
	"strings"
	"testing"

	"example.org/registry/readmodel/benchtext"
)

// FuzzNeedle: a needle is in a text exactly if strings.Contains says so.
func FuzzNeedle(f *testing.F) {
	f.Add("oszukał na nitro", "ł na")
	f.Add(strings.Repeat("aaaaaaab", 40), strings.Repeat("a", 8))
	f.Add(strings.Repeat("ab", 40)+"b", "bb")
	f.Add("x", "xx")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, text, needle string) {
		if needle == "" {
			return
		}
		if n := newNeedle(needle); n.isIn(text) != strings.Contains(text, needle) {
			t.Errorf("%q in %q: %v", needle, text, n.isIn(text))
		}
	})
}

// BenchmarkNeedle looks for six letters in reasons that most often lack them.
func BenchmarkNeedle(b *testing.B) {
	r := benchtext.New(rand.New(rand.NewPCG(1, 1)))
	var texts, needles []string
	for range 256 {
		texts = append(texts, r.Reason())
		text := []rune(texts[len(texts)-1])
		at := r.IntN(len(text) - 6)
		needles = append(needles, string(text[at:at+6]))
	}
	b.Run("Needle", func(b *testing.B) {
		for i := range b.N {
			n := newNeedle(needles[i%256])
			for _, text := range texts {
				n.isIn(text)
			}
		}
	})
	b.Run("Contains", func(b *testing.B) {
		for i := range b.N {
			for _, text := range texts {
				_ = strings.Contains(text, needles[i%256])
			}
		}
	})
}
