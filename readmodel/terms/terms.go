package terms

import (
	"cmp"
	_ "embed" // the table, the stop words and the lexicon
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/casefold"
	"example.org/registry/readmodel/lookalike"
)

//go:embed words.txt
var wordsFile string

//go:embed stop.txt
var stopFile string

// Stemmer holds the data that all analyzers share: the table, the lexicon and the stop words. It
// does not change after New; any goroutine may use it.
type Stemmer struct {
	table   map[string][]string // by form: its terms
	marked  map[string][]string // by form stripped of its marks, such as "zolty": forms of the table, such as "żółty"
	standIn map[string]string   // by lemma of the lexicon: the lemma that stands for it
	lexicon *lexicon
	stop    map[string]struct{} // folded, with and without marks
}

// New loads a Stemmer. That takes milliseconds and a megabyte, so reuse the Stemmer.
func New() *Stemmer {
	s := &Stemmer{
		table: map[string][]string{}, marked: map[string][]string{}, standIn: map[string]string{},
		lexicon: openLexicon(lexiconFile), stop: map[string]struct{}{},
	}

	// First read the lines "= LEMMA OTHER…", since declareTerm uses s.standIn. LEMMA stands for the others.
	for words := range lines(wordsFile) {
		if words[0] == "=" {
			for _, lemma := range words[2:] {
				s.standIn[lemma] = words[1]
			}
		}
	}

	for words := range lines(wordsFile) {
		if words[0] != "=" {
			s.declareTerm(words[0], words[1:])
		}
	}

	// Let a form be found without its marks.
	for _, form := range slices.Sorted(maps.Keys(s.table)) {
		if plain := lookalike.DropMarks(form); plain != form {
			s.marked[plain] = append(s.marked[plain], form)
		}
	}

	for words := range lines(stopFile) {
		for _, word := range words {
			s.stop[word] = struct{}{}
			s.stop[lookalike.DropMarks(word)] = struct{}{}
		}
	}
	return s
}

// Dictionary returns a line that names the source of the lexicon, its owner and its license.
func (s *Stemmer) Dictionary() string {
	return s.lexicon.source + "; sjp.pl, Marek Futrega, under Apache-2.0"
}

// lines returns the words of each line of a file. It skips comments and empty lines.
func lines(file string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(file) {
			words := strings.Fields(line)
			isSkipped := len(words) == 0 || words[0] == "#"
			if !isSkipped && !yield(words) {
				return
			}
		}
	}
}

// inflections has the endings of regular words, by the names that words.txt gives the inflections.
var inflections = map[string]string{
	"+m": "a u owi em y ów om ami ach",
	"+k": "a u owi iem i ów om ami ach",
	"+o": "owy owa owe owego owej owemu owym ową owych owymi owi",
	"+u": `ować uję ujesz uje ujemy ujecie ują uj ując ujący ująca ujące ującego ujących owało ował owała owali owały
		owałem owałam owałeś owałaś owaliśmy owano owany owana owane owani owanego owanej owanych owanie owania owaniem owaniu`,
}

// declareTerm puts the forms of a term into the table, under the lemma that stands for the term, if there is one. The
// name of an inflection stands for all its forms.
func (s *Stemmer) declareTerm(term string, forms []string) {
	add := func(form string) { s.table[form] = appendNew(s.table[form], cmp.Or(s.standIn[term], term)) }

	add(term)
	for _, form := range forms {
		endings, isInflection := inflections[form]
		if !isInflection {
			add(form)
			continue
		}
		for ending := range strings.FieldsSeq(endings) {
			add(term + ending)
		}
	}
}

// appendNew appends a term unless terms has it.
func appendNew(terms []string, term string) []string {
	if slices.Contains(terms, term) {
		return terms
	}
	return append(terms, term)
}

// Token is a word of a text.
type Token struct {
	Terms      []string // of the word; the caller must not change them
	Plain      string   // the word as written, folded and without diacritics
	Start, End int      // position in the text, in code points
	Part       bool     // a run of letters or of digits inside an earlier token that has both
	Folded     string   // the word as written, folded
}

// Analyzer makes tokens and caches terms. Each goroutine uses its own; all may share one Stemmer.
type Analyzer struct {
	stemmer *Stemmer
	terms   map[string][]string // by folded word
}

// Analyzer makes an Analyzer with an empty cache.
func (s *Stemmer) Analyzer() *Analyzer { return &Analyzer{s, map[string][]string{}} }

// The bounds of the cache of an Analyzer. A full cache is cleared.
const (
	maxCached     = 1 << 16 // words
	maxCachedWord = 64      // bytes of a word
)

// Terms returns the terms of a word in a text or a query. The word must be folded, as
// [Token.Folded] is. The caller must not change the terms.
func (a *Analyzer) Terms(folded string) []string {
	if terms, ok := a.terms[folded]; ok {
		return terms
	}
	if len(folded) > maxCachedWord {
		return a.stemmer.termsOf(folded)
	}

	if len(a.terms) == maxCached {
		clear(a.terms)
	}

	folded = strings.Clone(folded) // the cache would otherwise retain the whole text
	terms := a.stemmer.termsOf(folded)
	a.terms[folded] = terms
	return terms
}

// Tokens appends the tokens of text to dst, in order. It leaves out stop words if the text has other words. A text
// of stop words alone keeps them, since a person may be called Kilka (a few).
func (a *Analyzer) Tokens(dst []Token, text string) []Token {
	before := len(dst)
	dst = a.appendTokens(dst, text, a.stemmer.stop)
	if len(dst) == before {
		dst = a.appendTokens(dst, text, nil)
	}
	return dst
}

// appendTokens appends the tokens of text, in order, without the words in stop.
func (a *Analyzer) appendTokens(dst []Token, text string, stop map[string]struct{}) []Token {
	for pos := 0; text != ""; {
		size := measureWord(text)
		if size > 0 {
			dst = a.appendToken(dst, text[:size], pos, stop)
		} else {
			_, size = utf8.DecodeRuneInString(text) // skip a character between words
		}

		pos += utf8.RuneCountInString(text[:size])
		text = text[size:]
	}
	return dst
}

// measureWord returns the length in bytes of the word that text begins with, or 0 if text begins otherwise. A run
// of symbols that stand for letters (ⓚ, ㎏, ™) is a word of its own, so that Sklep™ is found as sklep. Invisible
// characters belong to a word if it goes on after them.
func measureWord(text string) (size int) {
	isInWord := lookalike.IsWordly
	if first, _ := utf8.DecodeRuneInString(text); !lookalike.IsWordly(first) {
		isInWord = isLetterSymbol
	}

	for i, r := range text {
		isInvisible := lookalike.IsInvisible(r)
		if isInvisible && size > 0 {
			continue
		}
		if isInvisible || !isInWord(r) {
			break
		}
		size = i + utf8.RuneLen(r)
	}
	return size
}

// isLetterSymbol reports whether r is a symbol that folding turns into letters or digits.
func isLetterSymbol(r rune) bool { return unicode.Is(unicode.So, r) && fold(string(r)) != "" }

// appendToken appends the token of a word at position start, and then its parts. It appends nothing if the word is
// in stop.
func (a *Analyzer) appendToken(dst []Token, word string, start int, stop map[string]struct{}) []Token {
	whole := a.newToken(word, start)
	if _, isStop := stop[whole.Folded]; isStop || whole.Plain == "" { // marks alone are not a word
		return dst
	}
	dst = append(dst, whole)

	// If a word has letters and digits, each run of at least two letters, or of two digits, is a part.
	for rest := word; rest != ""; {
		run := rest[:measureRun(rest)]
		if run == word {
			break // the word has letters only, or digits only
		}

		part := a.newToken(run, start)
		part.Part = true
		if part.End-start > 1 && part.Plain != "" {
			dst = append(dst, part)
		}
		rest = rest[len(run):]
		start = part.End
	}
	return dst
}

// newToken makes the token of a word at position start.
func (a *Analyzer) newToken(word string, start int) Token {
	folded := fold(word)
	end := start + utf8.RuneCountInString(word)
	return Token{Terms: a.Terms(folded), Plain: lookalike.DropMarks(folded), Start: start, End: end, Folded: folded}
}

// measureRun returns the length in bytes of the run of letters, or of digits, that word begins with.
func measureRun(word string) int {
	first, _ := utf8.DecodeRuneInString(word)
	for i, r := range word {
		if unicode.IsNumber(r) != unicode.IsNumber(first) {
			return i
		}
	}
	return len(word)
}

// termsOf returns the terms of a folded word. A known word with marks has the terms of its very spelling. Any other
// word has the terms of all words that differ from it in marks alone, or else its guessed stem.
func (s *Stemmer) termsOf(folded string) (terms []string) {
	plain := lookalike.DropMarks(folded)
	if plain != folded {
		terms = s.appendKnown(nil, folded)
		if terms != nil {
			return terms
		}
	}

	// The writer may have left out or mistaken marks: take every word of table and lexicon that differs in marks alone.
	spellings := s.lexicon.appendSpellings(slices.Clone(s.marked[plain]), plain)
	for _, word := range spellings {
		terms = s.appendKnown(terms, word)
	}
	terms = s.appendKnown(terms, plain)
	if terms == nil {
		return []string{guessStem(plain)}
	}
	return terms
}

// appendKnown appends the terms of a folded word in the table, or else in the lexicon.
func (s *Stemmer) appendKnown(terms []string, folded string) []string {
	if found, ok := s.table[folded]; ok {
		for _, term := range found {
			terms = appendNew(terms, term)
		}
		return terms
	}
	for _, lemma := range s.lexicon.lemmasOf(folded) {
		terms = appendNew(terms, cmp.Or(s.standIn[lemma], lemma))
	}
	return terms
}

// fold returns a word after NFKC and case folding, reduced to letters, marks and digits.
func fold(word string) string {
	folded := casefold.String(norm.NFKC.String(word))
	return lookalike.KeepWordly(lookalike.Visible(folded))
}
