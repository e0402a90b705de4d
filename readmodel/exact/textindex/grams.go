package textindex

import (
	"slices"
	"unicode/utf8"
)

// gram is up to three characters as a number: 21 bits for each, one more than the code point, so
// that none is 0. Numbers sort by the first character, then the second. The top bit marks grams of
// names.
type gram uint64

const (
	charBits      = 21
	charMask      = 1<<charBits - 1
	inNames  gram = 1 << (3 * charBits)
)

// The lists of words and of boundaries are stored among the lists of grams: as a value larger than any
// character, and a number.
const (
	wordKind     gram = (charMask - 1) << (2 * charBits)
	boundaryKind gram = charMask << (2 * charBits)
	numberMask   gram = 1<<32 - 1
)

// kind returns wordKind or boundaryKind for a numbered list, and another value for a gram.
func (g gram) kind() gram { return g &^ numberMask }

// maxExact is the length of the longest needle that the index holds as such, in characters.
const maxExact = 3

func gramOf(a, b, c rune) gram { return gram(a)<<(2*charBits) | gram(b)<<charBits | gram(c) }

// separator separates the fields of a text. No gram crosses it, and no needle contains it.
const separator = '\n'

// eachGram calls f with the grams of text, including repeated ones: every character, every three in
// a row, and the last two of each field, which no third one follows. Other pairs of characters are
// found as the beginning of a gram.
func eachGram(text string, f func(gram)) {
	var a, b rune // the last two characters of the field, plus one; 0 for none
	for _, r := range text {
		if r == separator {
			endField(a, b, f)
			a, b = 0, 0
			continue
		}
		c := r + 1
		f(gramOf(c, 0, 0))
		if a != 0 {
			f(gramOf(a, b, c))
		}
		a, b = b, c
	}
	endField(a, b, f)
}

func endField(a, b rune, f func(gram)) {
	if a != 0 {
		f(gramOf(a, b, 0))
	}
}

// span is the grams from low to high, both included.
type span struct {
	low, high gram
	bytes     int // of their lists in the first block searched
}

// spansOf returns spans of grams; a text that contains needle has a gram in each of them. Flag of
// is 0 or inNames.
func spansOf(needle string, of gram) (spans []span) {
	var chars [maxExact]rune
	known := 0
	for _, r := range needle {
		copy(chars[:], chars[1:])
		chars[maxExact-1] = r + 1
		if known++; known >= maxExact {
			g := of | gramOf(chars[0], chars[1], chars[2])
			spans = append(spans, span{low: g, high: g})
		}
	}
	switch known {
	case 1:
		g := of | gramOf(chars[2], 0, 0)
		return []span{{low: g, high: g}}
	case 2:
		g := of | gramOf(chars[1], chars[2], 0)
		return []span{{low: g, high: g | charMask}}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(int64(a.low - b.low)) })
	return slices.Compact(spans)
}

// exact reports whether every text that Find finds for needle contains it.
func exact(needle string) bool {
	return utf8.RuneCountInString(needle) <= maxExact && utf8.ValidString(needle)
}
