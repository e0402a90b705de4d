package terms

import (
	"bytes"
	_ "embed" // the file
	"slices"
	"strings"

	"github.com/blevesearch/vellum"
)

//go:embed lexicon.fst
var lexiconFile []byte

// lexicon has the lemmas of the forms of words: "sklep" for sklepu, sklepem and sklepach. Forms are looked up
// in the file itself, so four million of them take its 2.5 MB and hardly any more memory. Any goroutine may
// use a lexicon.
//
// The file has a line that names its source, a line for each set of rules, an empty line, and a transducer of
// package vellum from forms to the numbers of their sets. A rule turns a form into a lemma: its first letter
// says how many letters to cut off the end (A: none, B: one …), and the others are appended. A set has a rule
// for each lemma that the form may have. So words with the same inflection share the ends of their paths.
//
// Forms and lemmas consist of the letters a to z and the nine Polish ones with marks, in lower case.
// In the transducer each is a byte: letters with marks are capitals (see encodeWord).
type lexicon struct {
	source string
	sets   []string
	forms  *vellum.FST
}

// openLexicon opens the lexicon in a file that is a part of the program.
func openLexicon(file []byte) *lexicon {
	head, transducer, _ := bytes.Cut(file, []byte("\n\n"))
	source, sets, _ := strings.Cut(string(head), "\n")

	forms, err := vellum.Load(transducer)
	if err != nil {
		panic(err)
	}
	return &lexicon{source, strings.Split(sets, "\n"), forms}
}

// lemmasOf returns the lemmas of a form, as spelled. An unknown form has none.
func (l *lexicon) lemmasOf(form string) (lemmas []string) {
	key, ok := encodeWord(form)
	if !ok {
		return nil
	}

	set, isKnown, err := l.forms.Get(key)
	if err != nil || !isKnown {
		return nil
	}

	for rule := range strings.FieldsSeq(l.sets[set]) {
		stem := key[:len(key)-int(rule[0]-'A')]
		lemmas = append(lemmas, decodeWord(stem)+rule[1:])
	}
	return lemmas
}

// maxSpelled bounds the letters of a form whose other spellings are looked for.
const maxSpelled = 40

// appendSpellings appends the forms that equal this one except for marks that it lacks: zadał and żądał for
// "zadal".
func (l *lexicon) appendSpellings(dst []string, form string) []string {
	key, ok := encodeWord(form)
	if !ok || len(key) > maxSpelled {
		return dst
	}
	return l.appendPaths(dst, key, 0, l.forms.Start())
}

// appendPaths appends the forms that begin with the first n letters of key, which lead to state, and whose
// other letters are those of key with or without marks.
func (l *lexicon) appendPaths(dst []string, key []byte, n, state int) []string {
	if n == len(key) {
		if l.forms.IsMatch(state) {
			dst = append(dst, decodeWord(key))
		}
		return dst
	}

	letter := key[n]
	for _, spelled := range []byte(string(letter) + withMarks(letter)) {
		if next := l.forms.Accept(state, spelled); l.forms.CanMatch(next) {
			key[n] = spelled
			dst = l.appendPaths(dst, key, n+1, next)
		}
	}
	key[n] = letter // the caller goes on with the key as it was
	return dst
}

// In the transducer, a capital stands for each letter with a mark.
var (
	encoder = strings.NewReplacer("ą", "A", "ć", "C", "ę", "E", "ł", "L", "ń", "N", "ó", "O", "ś", "S", "ź", "X", "ż", "Z")
	decoder = strings.NewReplacer("A", "ą", "C", "ć", "E", "ę", "L", "ł", "N", "ń", "O", "ó", "S", "ś", "X", "ź", "Z", "ż")
)

// encodeWord returns a byte for each letter of a word. ok is false if the word has a letter that no form has.
func encodeWord(word string) (letters []byte, ok bool) {
	letters = []byte(encoder.Replace(word))
	isForeign := func(letter byte) bool { return letter < 'A' || letter > 'z' || 'Z' < letter && letter < 'a' }
	return letters, !slices.ContainsFunc(letters, isForeign)
}

// decodeWord is the inverse of encodeWord.
func decodeWord(letters []byte) string { return decoder.Replace(string(letters)) }

// withMarks returns the bytes of a letter with the marks that it can have.
func withMarks(letter byte) string {
	switch letter {
	case 'a', 'c', 'e', 'l', 'n', 'o', 's':
		return string(letter - 'a' + 'A')
	case 'z':
		return "XZ"
	}
	return ""
}
