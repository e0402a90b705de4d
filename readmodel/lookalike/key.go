package lookalike

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/casefold"
)

// Keys are the two look-alike keys of a text; either may be empty. Only keys of the same kind are
// comparable.
type Keys struct {
	// Shape keeps the letters' shapes: case is folded after the skeleton is taken, so that I looks
	// like l, and not like i.
	Shape string
	// Folded folds case before the skeleton is taken, so that I is i, and not l.
	Folded string
}

// KeysOf makes the keys of s, which is valid UTF-8. Any goroutine may call it.
func KeysOf(s string) Keys {
	return keysOf(Visible(s))
}

func keysOf(visible string) Keys {
	return Keys{
		Shape:  bare(casefold.String(skeleton(visible))),
		Folded: bare(skeleton(casefold.String(visible))),
	}
}

// Joined returns the keys without separators. Equal keys are equal joined.
func (k Keys) Joined() Keys { return Keys{Shape: joinedKey(k.Shape), Folded: joinedKey(k.Folded)} }

// joinedKey returns a key without separators: only letters, numbers and marks. Small capitals, which
// confusables.txt lacks, become letters. A key with nothing else loses only its white space.
func joinedKey(key string) string {
	if !strings.ContainsFunc(key, func(r rune) bool { return r >= utf8.RuneSelf || !IsWordly(r) }) {
		return key
	}
	var room [64]byte
	b := room[:0]
	for _, r := range key {
		if !IsWordly(r) {
			continue
		}
		at := -1
		if r >= utf8.RuneSelf {
			at = strings.IndexRune(smallCapitals, r)
		}
		switch {
		case at < 0:
			b = utf8.AppendRune(b, r)
		case r == 'ʍ':
			b = append(b, "rn"...) // as the skeleton of m
		default:
			b = append(b, capitals[utf8.RuneCountInString(smallCapitals[:at])])
		}
	}
	if len(b) == 0 {
		return strings.Join(strings.Fields(key), "")
	}
	return string(b)
}

// The small capitals that a key may hold, and their letters.
const (
	smallCapitals = "ᴀʙᴅᴇꜰɢʜᴊĸʟʍɴᴘꞯʀᴛ"
	capitals      = "abdefghjklmnpqrt"
)

// Alike reports whether two names look the same: whether they share a key of one kind.
func (k Keys) Alike(other Keys) bool {
	return k.Shape != "" && k.Shape == other.Shape || k.Folded != "" && k.Folded == other.Folded
}

// Visible returns s, which is valid UTF-8, in NFKC and without invisible characters.
func Visible(s string) string { return visible(norm.NFKC.String(s)) }

// visible returns s without invisible characters.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return r
	}, s)
}

// skeleton returns the skeleton of UTS #39, section 4: each code point of the decomposed text is
// replaced by its prototype.
func skeleton(s string) string {
	s = norm.NFD.String(s)
	var b strings.Builder
	b.Grow(len(s) + 8)
	for _, r := range s {
		if p := prototype(r); p != "" {
			b.WriteString(p)
		} else {
			b.WriteRune(r)
		}
	}
	return norm.NFD.String(b.String())
}

// bare returns s without marks, and without the strokes that Unicode does not count as marks.
func bare(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			return r
		case unicode.Is(unicode.M, r):
			return -1
		default:
			return unstroked(r)
		}
	}, norm.NFD.String(s))
}

// unstroked returns the base letter of a letter with a stroke or bar, which has no decomposition.
// confusables.txt maps most of them to a letter and an overlaid mark, but has some in one case
// only, and folding after the skeleton restores the other. The list has the letters with a stroke,
// bar or diagonal stroke in Latin-1 and Latin Extended-A to -C. Letters with hooks, tails and curls
// are other letters, and stay.
func unstroked(r rune) rune {
	switch r {
	case 'ⱥ':
		return 'a'
	case 'ƀ':
		return 'b'
	case 'ȼ':
		return 'c'
	case 'đ':
		return 'd'
	case 'ɇ':
		return 'e'
	case 'ǥ':
		return 'g'
	case 'ħ':
		return 'h'
	case 'ɨ':
		return 'i'
	case 'ɉ':
		return 'j'
	case 'ł', 'ƚ', 'ⱡ':
		return 'l'
	case 'ø':
		return 'o'
	case 'ᵽ':
		return 'p'
	case 'ɍ':
		return 'r'
	case 'ŧ', 'ⱦ':
		return 't'
	case 'ʉ':
		return 'u'
	case 'ɏ':
		return 'y'
	case 'ƶ':
		return 'z'
	}
	return r
}
