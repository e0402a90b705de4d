package terms

import (
	"bufio"
	"bytes"
	_ "embed" // the table
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis/lang/pl"
	"github.com/blevesearch/bleve/v2/analysis/lang/pl/stempel"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

//go:embed words.txt
var wordsFile string

// Stemmer has what all analyzers share: the table, the stop words and Stempel's trie. It does not change
// after New; any goroutine may use it.
type Stemmer struct {
	trie  stempel.Trie
	table map[string]string   // form to term
	stop  map[string]struct{} // folded
}

// New loads a Stemmer. It reads two megabytes: keep it.
func New() (*Stemmer, error) {
	trie, err := stempel.LoadTrie()
	if err != nil {
		return nil, fmt.Errorf("terms: %w", err)
	}
	s := &Stemmer{trie: trie, table: map[string]string{}, stop: stopWords()}
	for line := range strings.Lines(wordsFile) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			s.declare(fields[0], fields[1:])
		}
	}
	return s, nil
}

// declare puts the forms of a stem into the table.
func (s *Stemmer) declare(stem string, forms []string) {
	term := withoutMarks(stem)
	s.table[stem] = term
	for _, form := range forms {
		switch form {
		case "+m":
			for _, ending := range strings.Fields("a u owi em y i e ów om ami ach") {
				s.table[stem+ending] = term
			}
		case "+o":
			for _, ending := range strings.Fields("owy owa owe owego owej owemu owym ową owych owymi") {
				s.table[stem+ending] = term
			}
		default:
			s.table[form] = term
		}
	}
}

// stopWords is bleve's list without "nie".
func stopWords() map[string]struct{} {
	stop := map[string]struct{}{}
	for lines := bufio.NewScanner(bytes.NewReader(pl.PolishStopWords)); lines.Scan(); {
		word, _, _ := strings.Cut(lines.Text(), "|")
		if word = strings.TrimSpace(word); word != "" && word != "nie" {
			stop[word] = struct{}{}
		}
	}
	return stop
}

// Token is a word of a text.
type Token struct {
	Term       string // what is compared
	Plain      string // the word as written, folded and without diacritics
	Start, End int    // where in the text, in code points
	Part       bool   // it is part of the token before it: the letters, or the digits, of a name with both
	Folded     string // the word as written, folded
}

// Analyzer makes tokens and remembers stems. One goroutine uses it; a Stemmer can have many.
type Analyzer struct {
	stemmer *Stemmer
	terms   map[string]string // by folded word
}

// Analyzer makes an Analyzer that remembers nothing yet.
func (s *Stemmer) Analyzer() *Analyzer { return &Analyzer{s, map[string]string{}} }

// Term returns the term of a word that is folded already, as [Token.Folded] is.
func (a *Analyzer) Term(folded string) string { return a.term(folded) }

// Ogonek returns the term of a folded word with the ogonek that its last letter lacks if it was typed without: that of "nagrodę"
// for "nagrode", of "kradną" for "kradna". ok is false for words that end in another letter.
func (a *Analyzer) Ogonek(folded string) (term string, ok bool) {
	if word, cut := strings.CutSuffix(folded, "e"); cut {
		return a.term(word + "ę"), true
	}
	if word, cut := strings.CutSuffix(folded, "a"); cut {
		return a.term(word + "ą"), true
	}
	return "", false
}

// maxRemembered is how many stems an Analyzer remembers before it forgets them all.
const maxRemembered = 1 << 16

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

// word is how long the token is that text begins with: 0 for none.
func word(text string) (size, runes int) {
	for _, r := range text {
		if !unicode.In(r, unicode.L, unicode.M, unicode.N) {
			break
		}
		size, runes = size+utf8.RuneLen(r), runes+1
	}
	return size, runes
}

func (a *Analyzer) token(dst []Token, text string, start, end int) []Token {
	folded := fold(text)
	plain := withoutMarks(folded)
	if _, stop := a.stemmer.stop[folded]; stop || plain == "" { // marks alone are no word
		return dst
	}
	dst = append(dst, Token{a.term(folded), plain, start, end, false, folded})
	for at, n := 0, start; at < len(text); {
		size, runes := alike(text[at:])
		if size == len(text) {
			break // of one kind
		}
		if part := fold(text[at : at+size]); runes > 1 {
			dst = append(dst, Token{a.term(part), withoutMarks(part), n, n + runes, true, part})
		}
		at, n = at+size, n+runes
	}
	return dst
}

// alike is how long the run of letters, or of digits, is that text begins with.
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

// term is the stem of a folded word.
func (a *Analyzer) term(folded string) string {
	if term, ok := a.terms[folded]; ok {
		return term
	}
	if len(a.terms) == maxRemembered {
		clear(a.terms)
	}
	term := a.stemmer.term(folded)
	a.terms[folded] = term
	return term
}

// minStem is the shortest word that is stemmed, in letters: what is left of shorter ones says too little.
const minStem = 4

func (s *Stemmer) term(folded string) string {
	if term, ok := s.table[folded]; ok {
		return term
	}
	letters := []rune(folded)
	if len(letters) < minStem || len(letters) > 32 || !isPolish(letters) {
		return withoutMarks(folded)
	}
	stem := stempel.Diff(letters, s.trie.GetLastOnPath(letters))
	if len(stem) < 3 {
		return withoutMarks(folded)
	}
	return withoutMarks(string(stem))
}

func isPolish(letters []rune) bool {
	for _, r := range letters {
		if (r < 'a' || r > 'z') && !strings.ContainsRune("ąćęłńóśźż", r) {
			return false
		}
	}
	return true
}

// fold is NFKC and case folding, of which only letters and digits are kept.
func fold(word string) string {
	ascii := true
	for i := range len(word) {
		ascii = ascii && word[i] < utf8.RuneSelf && (word[i] < 'A' || word[i] > 'Z')
	}
	if ascii {
		return word
	}
	folded := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(word)))
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.L, unicode.M, unicode.N) {
			return r
		}
		return -1
	}, folded)
}

// withoutMarks takes the diacritics off, those of ł, đ and ø too.
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
