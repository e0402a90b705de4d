package terms

import (
	"cmp"
	_ "embed" // the table, the stop words and the lexicon
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/casefold"
	"example.org/registry/readmodel/terms/lexicon"
)

// Version numbers the analysis: the tables, the lexicon, the stop words and the code. An index of
// another Version is rebuilt (package ranked). TestVersion fails if the analysis changes and
// Version does not.
const Version = 6

//go:embed words.txt
var wordsFile string

//go:embed stop.txt
var stopFile string

//go:embed lexicon.fst
var lexiconFile []byte

// Stemmer holds the data that all analyzers share: the table, the lexicon and the stop words. It
// does not change after New; any goroutine may use it.
type Stemmer struct {
	table   map[string][]string // form to terms
	marked  map[string][]string // form without its marks to the forms of the table with marks
	same    map[string]string   // lemma of the lexicon to the lemma that represents it
	lexicon *lexicon.Lexicon
	stop    map[string]struct{} // folded, with and without marks
}

// New loads a Stemmer. It takes milliseconds and a megabyte, so reuse it.
func New() (*Stemmer, error) {
	l, err := lexicon.Open(lexiconFile)
	if err != nil {
		return nil, fmt.Errorf("terms: %w", err)
	}
	s := &Stemmer{table: map[string][]string{}, marked: map[string][]string{}, same: map[string]string{}, lexicon: l, stop: map[string]struct{}{}}
	for words := range lines(wordsFile) {
		if words[0] == "=" {
			for _, lemma := range words[2:] {
				s.same[lemma] = words[1]
			}
		}
	}
	for words := range lines(wordsFile) {
		if words[0] != "=" {
			s.declare(words[0], words[1:])
		}
	}
	for _, form := range slices.Sorted(maps.Keys(s.table)) {
		if bare := withoutMarks(form); bare != form {
			s.marked[bare] = append(s.marked[bare], form)
		}
	}
	for words := range lines(stopFile) {
		for _, word := range words {
			s.stop[word], s.stop[withoutMarks(word)] = struct{}{}, struct{}{}
		}
	}
	return s, nil
}

// Dictionary returns a line that names the source of the lexicon, its owner and its license.
func (s *Stemmer) Dictionary() string {
	return s.lexicon.Source() + "; sjp.pl, Marek Futrega, under Apache-2.0"
}

// lines returns the words of each line of a file. It skips comments and empty lines.
func lines(file string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(file) {
			if words := strings.Fields(line); len(words) > 0 && words[0] != "#" && !yield(words) {
				return
			}
		}
	}
}

// declare puts the forms of a term into the table. words.txt explains "+m" and the like.
func (s *Stemmer) declare(term string, forms []string) {
	add := func(form string) { s.table[form] = appendNew(s.table[form], cmp.Or(s.same[term], term)) }
	endings := func(stem, endings string) {
		for _, ending := range strings.Fields(endings) {
			add(stem + ending)
		}
	}
	add(term)
	for _, form := range forms {
		switch form {
		case "+m":
			endings(term, "a u owi em y ów om ami ach")
		case "+k":
			endings(term, "a u owi iem i ów om ami ach")
		case "+o":
			endings(term, "owy owa owe owego owej owemu owym ową owych owymi owi")
		case "+u":
			endings(term, `ować uję ujesz uje ujemy ujecie ują uj ując ujący ująca ujące ującego ujących owało ował owała owali owały
				owałem owałam owałeś owałaś owaliśmy owano owany owana owane owani owanego owanej owanych owanie owania owaniem owaniu`)
		default:
			add(form)
		}
	}
}

// appendNew appends a term that is missing.
func appendNew(terms []string, term string) []string {
	if slices.Contains(terms, term) {
		return terms
	}
	return append(terms, term)
}

// Token is a word of a text.
type Token struct {
	Terms      []string // what is compared: the text has each of them. Must not be changed
	Plain      string   // the word as written, folded and without diacritics
	Start, End int      // position in the text, in code points
	Part       bool     // part of the token before: the letters, or the digits, of a name with both
	Weak       bool     // says little: a query that has other words ignores it
	Folded     string   // the word as written, folded
}

// Analyzer makes tokens and caches terms. One goroutine uses it; a Stemmer can have many.
type Analyzer struct {
	stemmer *Stemmer
	terms   map[string][]string // by folded word
}

// Analyzer makes an Analyzer with an empty cache.
func (s *Stemmer) Analyzer() *Analyzer { return &Analyzer{s, map[string][]string{}} }

// Terms returns the terms of a word, of a text or a query. The word must be folded, as
// [Token.Folded] is. The caller must not change them.
func (a *Analyzer) Terms(folded string) []string {
	if terms, ok := a.terms[folded]; ok {
		return terms
	}
	if len(a.terms) == maxRemembered {
		clear(a.terms)
	}
	if len(folded) > maxRememberedWord {
		return a.stemmer.terms(folded)
	}
	folded = strings.Clone(folded) // the cache would otherwise retain the whole text
	terms := a.stemmer.terms(folded)
	a.terms[folded] = terms
	return terms
}

// maxRemembered bounds the cache of an Analyzer, in words; when full, it is cleared.
const maxRemembered = 1 << 16

// maxRememberedWord bounds the words in the cache, in bytes.
const maxRememberedWord = 64

// Tokens appends the tokens of text to dst, in order, without stop words.
func (a *Analyzer) Tokens(dst []Token, text string) []Token {
	for at, n := 0, 0; at < len(text); {
		size, runes := word(text[at:])
		if size == 0 {
			_, size = utf8.DecodeRuneInString(text[at:])
			at, n = at+size, n+1
			continue
		}
		dst = a.token(dst, text[at:at+size], n, n+runes)
		at, n = at+size, n+runes
	}
	return dst
}

// word returns the length of the token that text begins with, in bytes and in code points, or 0 if
// there is none. Invisible characters within a token do not end it. Symbols that stand for letters
// (ⓚ, ㎏, ™) are tokens of their own, so that Sklep™ is found as sklep.
func word(text string) (size, runes int) {
	first, _ := utf8.DecodeRuneInString(text)
	inWord := isLetter
	if !isLetter(first) {
		inWord = isLetterSymbol
	}
	for at, n := 0, 0; at < len(text); n++ {
		r, width := utf8.DecodeRuneInString(text[at:])
		switch at += width; {
		case isInvisible(r) && size > 0:
		case isInvisible(r) || !inWord(r):
			return size, runes
		default:
			size, runes = at, n+1
		}
	}
	return size, runes
}

func isLetter(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }

// isLetterSymbol reports whether r is a symbol that folding makes letters or digits of.
func isLetterSymbol(r rune) bool { return unicode.Is(unicode.So, r) && fold(string(r)) != "" }

// isInvisible reports whether a character is displayed as nothing, such as a soft hyphen or a
// zero-width joiner.
func isInvisible(r rune) bool {
	return r >= 0xad && unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func (a *Analyzer) token(dst []Token, text string, start, end int) []Token {
	folded := fold(text)
	plain := withoutMarks(folded)
	if _, stop := a.stemmer.stop[folded]; stop || plain == "" { // marks alone are not a word
		return dst
	}
	terms := a.Terms(folded)
	dst = append(dst, Token{Terms: terms, Plain: plain, Start: start, End: end, Weak: slices.ContainsFunc(terms, isWeak), Folded: folded})
	for at, n := 0, start; at < len(text); {
		size, runes := alike(text[at:])
		if size == len(text) {
			break // letters only, or digits only
		}
		part := fold(text[at : at+size])
		if plain := withoutMarks(part); runes > 1 && plain != "" {
			dst = append(dst, Token{Terms: a.Terms(part), Plain: plain, Start: n, End: n + runes, Part: true, Folded: part})
		}
		at, n = at+size, n+runes
	}
	return dst
}

// alike returns the length of the run of letters, or of digits, that text begins with, in bytes and
// in code points.
func alike(text string) (size, runes int) {
	first, _ := utf8.DecodeRuneInString(text)
	for _, r := range text {
		if unicode.IsNumber(r) != unicode.IsNumber(first) {
			break
		}
		size, runes = size+utf8.RuneLen(r), runes+1
	}
	return size, runes
}

// isWeak reports whether a term is a verb that says little next to other words.
func isWeak(term string) bool {
	return term == "mieć" || term == "móc" || term == "chcieć" || term == "musieć"
}

// terms returns the terms of a folded word: those of its spelling, if it has marks and is known,
// or else of all the words that are spelled like it apart from marks. If there is no such word, it
// guesses.
func (s *Stemmer) terms(folded string) (terms []string) {
	plain := withoutMarks(folded)
	if plain != folded {
		if terms = s.known(nil, folded); terms != nil {
			return terms
		}
	}
	for _, word := range s.lexicon.Spellings(slices.Clone(s.marked[plain]), plain) {
		terms = s.known(terms, word)
	}
	if terms = s.known(terms, plain); terms == nil {
		terms = []string{guess(plain)}
	}
	return terms
}

// known appends the terms of a folded word in the table, or else in the lexicon.
func (s *Stemmer) known(terms []string, folded string) []string {
	if of, ok := s.table[folded]; ok {
		for _, term := range of {
			terms = appendNew(terms, term)
		}
		return terms
	}
	for _, lemma := range s.lexicon.Lemmas(nil, folded) {
		terms = appendNew(terms, cmp.Or(s.same[lemma], lemma))
	}
	return terms
}

// fold returns a word after NFKC and case folding, reduced to letters, marks and digits.
func fold(word string) string {
	ascii := true
	for i := range len(word) {
		ascii = ascii && word[i] < utf8.RuneSelf && (word[i] < 'A' || word[i] > 'Z')
	}
	if ascii {
		return word
	}
	folded := norm.NFKC.String(casefold.String(norm.NFKC.String(word)))
	return strings.Map(func(r rune) rune {
		if isLetter(r) && !isInvisible(r) {
			return r
		}
		return -1
	}, folded)
}

// withoutMarks removes the diacritics, also from ł, đ and ø.
func withoutMarks(s string) string {
	marked := false
	for i := range len(s) {
		marked = marked || s[i] >= utf8.RuneSelf
	}
	if !marked {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case r == 'ł':
			return 'l'
		case r == 'đ':
			return 'd'
		case r == 'ø':
			return 'o'
		}
		return r
	}, norm.NFD.String(s))
}
