package lookalike

import (
	"cmp"
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
	s = Visible(s)
	return Keys{
		Shape:  bare(casefold.String(skeleton(s))),
		Folded: bare(skeleton(casefold.String(s))),
	}
}

// Joined returns the keys without separators: only letters, numbers and marks. Small capitals,
// which confusables.txt lacks, become letters.
func (k Keys) Joined() Keys { return Keys{Shape: joined(k.Shape), Folded: joined(k.Folded)} }

func joined(key string) string {
	var room [64]byte
	return string(AppendJoined(room[:0], key))
}

// AppendJoined appends one key in the form of Joined.
func AppendJoined(b []byte, key string) []byte {
	for _, r := range key {
		if r == '_' || isAround(r) {
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
	return b
}

// AppendCore appends one key in the form of AppendJoined, without the number of an old tag. If
// nothing is left, it appends the key with single spaces. Names that are equal after [Bare] have
// equal cores.
func AppendCore(b []byte, key string) []byte {
	from := len(b)
	name := strings.TrimRightFunc(key, isAround)
	for {
		at := strings.LastIndexByte(name, '#')
		if at <= 0 || !isTag(strings.TrimSpace(name[at+1:])) || strings.IndexFunc(name[:at], isWordly) < 0 {
			break
		}
		name = strings.TrimRightFunc(name[:at], isAround)
	}
	if b = AppendJoined(b, name); len(b) == from {
		return append(b, strings.Join(strings.Fields(key), " ")...)
	}
	return b
}

// isTag reports whether s, part of a key, may be the number of an old tag: 0, or four digits. In
// keys, letters replace 0 and 1.
func isTag(s string) bool {
	return (s == "0" || len(s) == 4 || len(s) == 1 && strings.Trim(s, "oO") == "") && strings.Trim(s, "0123456789oOl") == ""
}

func isWordly(r rune) bool { return !isAround(r) }

// isAround reports whether r cannot be part of a word.
func isAround(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && r != '_'
}

// Bare returns a name without its decoration: @, quotes, punctuation, emoji, and the number of an
// old tag. A name that is only decoration stays.
func Bare(name string) string {
	bare := name
	for {
		next := strings.TrimLeftFunc(strings.TrimFunc(bare, isAround), unicode.IsMark)
		if at := strings.LastIndexByte(next, '#'); at > 0 {
			if tag := strings.TrimSpace(next[at+1:]); (tag == "0" || len(tag) == 4) && strings.Trim(tag, "0123456789") == "" {
				next = next[:at]
			}
		}
		if next == bare || next == "" {
			return strings.Join(strings.Fields(cmp.Or(next, name)), " ")
		}
		bare = next
	}
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
