package lookalike

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/casefold"
)

// Explanation gives the reasons why a name looks like another although the texts differ. Several
// may hold; for two texts with equal keys at least one does.
type Explanation struct {
	Hidden  bool     // one of the texts has invisible characters
	Marks   []Letter // letters with marks or strokes that the other text has without: ł and l
	Letters []Letter // letters that replace others, each once, in the order of the text
}

// Letter is a character that looks like another text.
type Letter struct {
	Rune      rune
	LooksLike string // the text that it resembles
}

// Explain returns why name, which shares a key with search, does not match it literally. Any
// goroutine may call it.
func Explain(name, search string) Explanation {
	n, s := norm.NFKC.String(name), norm.NFKC.String(search)
	why := Explanation{Hidden: Hidden(name) || Hidden(search)}
	n, s = visible(n), visible(s)
	if strings.Contains(casefold.String(n), casefold.String(s)) {
		return why
	}
	if why.Marks = marked(n, s); len(why.Marks) == 0 {
		why.Marks = marked(s, n)
	}
	if !strings.Contains(bare(casefold.String(n)), bare(casefold.String(s))) {
		why.Letters = letters(n, s)
	}
	return why
}

// marked returns the letters of text with a mark or stroke that other has only without it.
func marked(text, other string) (found []Letter) {
	other = casefold.String(other)
	for _, r := range casefold.String(text) {
		plain := bare(string(r))
		if plain == string(r) || plain == "" || strings.ContainsRune(other, r) || !strings.Contains(other, plain) || named(found, r) {
			continue
		}
		found = append(found, Letter{r, plain})
	}
	return found
}

// letters returns the characters of n that are not in s and look like something in s. If there are
// none it swaps the texts, since either may be the disguise.
func letters(n, s string) []Letter {
	if found := unmatched(n, s); len(found) > 0 {
		return found
	}
	return unmatched(s, n)
}

// unmatched returns the characters of text that are not in other and look like something in other.
func unmatched(text, other string) (found []Letter) {
	shape := KeysOf(other).Shape
	other = casefold.String(other)
	for _, r := range text {
		folded := casefold.String(string(r))
		looks := bare(casefold.String(skeleton(string(r))))
		if looks == bare(folded) || strings.Contains(other, folded) || looks == "" || !strings.Contains(shape, looks) || named(found, r) {
			continue
		}
		found = append(found, Letter{r, looks})
	}
	return found
}

func named(found []Letter, r rune) bool {
	for _, l := range found {
		if l.Rune == r {
			return true
		}
	}
	return false
}

// Hidden reports whether s has invisible characters that a disguise can use. Characters that form
// an emoji do not count: joiners and variation selectors next to symbols, and tags after a flag.
func Hidden(s string) bool {
	var before rune
	rest := []rune(s)
	for i, r := range rest {
		var after rune
		if i+1 < len(rest) {
			after = rest[i+1]
		}
		switch {
		case !ignorable(r):
		case r == '\u200d' && pictorial(before) && pictorial(after):
		case (r == '\ufe0e' || r == '\ufe0f') && (pictorial(before) || strings.ContainsRune("0123456789#*", before)):
			continue // the next character follows a symbol
		case r >= 0xe0020 && r <= 0xe007f && before == blackFlag:
			continue // England, Scotland, Wales
		default:
			return true
		}
		before = r
	}
	return false
}

// blackFlag begins the flags of parts of a country.
const blackFlag = '\U0001f3f4'

// pictorial reports whether r is a symbol, or a skin tone.
func pictorial(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sm) || r >= 0x1f3fb && r <= 0x1f3ff || r == '‼' || r == '⁉' || r == '〰'
}

// Script returns the name of r's script if it is used to disguise names, else "".
func Script(r rune) string {
	for _, s := range []struct {
		name  string
		table *unicode.RangeTable
	}{{"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian}, {"Hebrew", unicode.Hebrew}} {
		if unicode.Is(s.table, r) {
			return s.name
		}
	}
	return ""
}

// ScriptOf returns the script of a letter, or nil if several scripts have it.
func ScriptOf(r rune) *unicode.RangeTable {
	if unicode.Is(unicode.Latin, r) {
		return unicode.Latin
	}
	for name, table := range unicode.Scripts {
		if name != "Common" && name != "Inherited" && unicode.Is(table, r) {
			return table
		}
	}
	return nil
}
