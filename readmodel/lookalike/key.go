package lookalike

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/casefold"
)

// Keys are the two look-alike keys of a text; either may be empty. Compare only keys of the same kind.
type Keys struct {
	// Shape keeps the letters' shapes: case is folded after the skeleton is taken, so that I looks
	// like l, and not like i.
	Shape string
	// Folded folds case before the skeleton is taken, so that I is i, and not l.
	Folded string
}

// KeysOf makes the keys of s, which is valid UTF-8. Any goroutine may call it.
func KeysOf(s string) Keys { return keysOf(Visible(s)) }

// keysOf makes the keys of a visible text. Most texts have only characters up to Latin Extended-A. These do not
// combine with each other, so the keys of such a text are the keys of its characters, one after the other.
func keysOf(visible string) Keys {
	table := latinKeys()
	var shape, folded []byte
	for _, r := range visible {
		if int(r) >= len(table) {
			return anyKeysOf(visible)
		}
		shape = append(shape, table[r].Shape...)
		folded = append(folded, table[r].Folded...)
	}
	return Keys{Shape: string(shape), Folded: string(folded)}
}

// latinKeys returns the keys of each character up to Latin Extended-A.
var latinKeys = sync.OnceValue(func() *[0x180]Keys {
	table := &[0x180]Keys{}
	for r := range table {
		table[r] = anyKeysOf(string(rune(r)))
	}
	return table
})

// anyKeysOf makes the keys of any visible text.
func anyKeysOf(visible string) Keys {
	return Keys{
		Shape:  DropMarks(casefold.String(skeletonOf(visible))),
		Folded: DropMarks(skeletonOf(casefold.String(visible))),
	}
}

// Joined returns the keys without separators. Equal keys are equal joined.
func (k Keys) Joined() Keys { return Keys{Shape: joinKey(k.Shape), Folded: joinKey(k.Folded)} }

// joinKey returns a key without separators: only letters, numbers and marks. Small capitals, which
// confusables.txt lacks, become letters. A key that has only separators loses just its white space.
func joinKey(key string) string {
	mayChange := func(r rune) bool { return r >= utf8.RuneSelf || !IsWordly(r) }
	if !strings.ContainsFunc(key, mayChange) {
		return key
	}

	joined := smallCapitals.Replace(KeepWordly(key))
	if joined == "" {
		return strings.Join(strings.Fields(key), "")
	}
	return joined
}

// Alike reports whether two names look the same: whether they share a key of one kind.
func (k Keys) Alike(other Keys) bool {
	shareShape := k.Shape != "" && k.Shape == other.Shape
	shareFolded := k.Folded != "" && k.Folded == other.Folded
	return shareShape || shareFolded
}

// Distinct returns the keys that are not empty, each once.
func (k Keys) Distinct() []string {
	both := slices.Compact([]string{k.Shape, k.Folded})
	return slices.DeleteFunc(both, func(key string) bool { return key == "" })
}

// Visible returns s, which is valid UTF-8, in NFKC and without invisible characters.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if IsInvisible(r) {
			return -1
		}
		return r
	}, norm.NFKC.String(s))
}

// skeletonOf returns the skeleton of UTS #39, section 4: each code point of the decomposed text is
// replaced by its prototype.
func skeletonOf(s string) string {
	s = norm.NFD.String(s)
	prototypeOf := prototypes()

	var b strings.Builder
	b.Grow(len(s) + 8)
	for _, r := range s {
		if p, ok := prototypeOf[r]; ok {
			b.WriteString(p)
		} else {
			b.WriteRune(r)
		}
	}
	return norm.NFD.String(b.String())
}

// DropMarks returns s without marks, and without the strokes that Unicode does not count as marks.
func DropMarks(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return r
		}
		if unicode.Is(unicode.M, r) {
			return -1
		}

		return cmp.Or(unstroked[r], r)
	}, norm.NFD.String(s))
}

// unstroked has the base letters of the letters with a stroke or bar in Latin-1 and Latin Extended-A to -C, which
// Unicode does not decompose. confusables.txt maps most of them to a letter and an overlaid mark. But it maps some
// only as capitals or only as small letters; a letter in the other case keeps its stroke in the skeleton. Letters
// with hooks, tails and curls are other letters, and stay.
var unstroked = map[rune]rune{
	'ⱥ': 'a', 'ƀ': 'b', 'ȼ': 'c', 'đ': 'd', 'ɇ': 'e', 'ǥ': 'g', 'ħ': 'h', 'ɨ': 'i', 'ɉ': 'j', 'ł': 'l',
	'ƚ': 'l', 'ⱡ': 'l', 'ø': 'o', 'ᵽ': 'p', 'ɍ': 'r', 'ŧ': 't', 'ⱦ': 't', 'ʉ': 'u', 'ɏ': 'y', 'ƶ': 'z',
}
