package lookalike

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Why is what makes a name look like another although it is not the same text. More than one may be
// true; for two texts with equal keys at least one is.
type Why struct {
	Hidden  bool     // one has characters that are shown as nothing
	Marks   []Letter // letters with marks or strokes that the other text has without: ł and l
	Letters []Letter // letters of the first that stand for others, each once, in their order
}

// Letter is a character that looks like something else.
type Letter struct {
	Rune  rune
	Looks string // what it is taken for
}

// Explain says why name, which has a key in common with search, is not found by search itself. Any
// goroutine may call it.
func Explain(name, search string) Why {
	n, s := norm.NFKC.String(name), norm.NFKC.String(search)
	why := Why{Hidden: n != visible(n) || s != visible(s)}
	n, s = visible(n), visible(s)
	if strings.Contains(fold(n), fold(s)) {
		return why
	}
	if why.Marks = marked(n, s); len(why.Marks) == 0 {
		why.Marks = marked(s, n)
	}
	if !strings.Contains(bare(fold(n)), bare(fold(s))) {
		why.Letters = letters(n, s)
	}
	return why
}

// marked are the letters of text with a mark or stroke that other has only without.
func marked(text, other string) (found []Letter) {
	other = fold(other)
	for _, r := range fold(text) {
		plain := bare(string(r))
		if plain == string(r) || plain == "" || strings.ContainsRune(other, r) || !strings.Contains(other, plain) || named(found, r) {
			continue
		}
		found = append(found, Letter{r, plain})
	}
	return found
}

// letters are the characters of n that s does not have and that look like something in it, or, where
// there are none, the other way round: which of the two is the disguise nobody can tell.
func letters(n, s string) []Letter {
	if found := strange(n, s); len(found) > 0 {
		return found
	}
	return strange(s, n)
}

func strange(text, other string) (found []Letter) {
	shape := KeysOf(other).Shape
	other = fold(other)
	for _, r := range text {
		folded := fold(string(r))
		looks := bare(fold(skeleton(string(r))))
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

// Ignorable says whether r is shown as nothing: a character that can be put into a name unseen.
func Ignorable(r rune) bool { return ignorable(r) }

// Script is the name of the script of r, for those that names are disguised with; else "".
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
