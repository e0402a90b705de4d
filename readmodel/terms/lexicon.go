package terms

import (
	"bytes"
	_ "embed" // the file
	"strings"

	"github.com/blevesearch/vellum"
)

//go:embed lexicon.fst
var lexiconFile []byte

// lexicon has the lemmas of the forms of words: "sklep" for sklepu, sklepem and sklepach. Forms are looked up in the
// file itself, so four million forms take the file's 2.5 MB and hardly any more. Any goroutine may use a lexicon.
//
// The file has a line that names its source, a line for each set of rules, an empty line, and a transducer of
// package vellum, which maps forms to the numbers of their sets. A rule turns a form into a lemma: its first
// letter says how many letters to cut off the end (A: none, B: one …), and its other letters are appended. A set
// has a rule for each lemma that the form may have. Words with the same inflection share sets, so the transducer
// stores their common endings once.
//
// Forms and lemmas consist of the letters a to z and the nine Polish letters with marks, in lower case. In the
// transducer each letter is a byte: letters with marks are capitals (see encodeWord).
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

// lemmasOf returns the lemmas of a form, which must be spelled with all its marks. An unknown form has none.
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
		numCut := int(rule[0] - 'A')
		ending := rule[1:]
		lemmas = append(lemmas, decodeWord(key[:len(key)-numCut])+ending)
	}
	return lemmas
}

// maxSpelled bounds the letters of a form whose other spellings are looked for.
const maxSpelled = 40

// appendSpellings appends the forms that equal this form once their marks are dropped: zadał and żądał for "zadal".
func (l *lexicon) appendSpellings(dst []string, form string) []string {
	key, ok := encodeWord(form)
	if !ok || len(key) > maxSpelled {
		return dst
	}
	return l.appendPaths(dst, key, 0, l.forms.Start())
}

// appendPaths appends the forms that begin with the first n letters of key, and go on with its other letters, with
// or without marks. The first n letters lead to state. appendPaths changes the other letters, and restores them.
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
	key[n] = letter
	return dst
}

// In the transducer, a capital stands for each letter with a mark.
var (
	encoder = strings.NewReplacer("ą", "A", "ć", "C", "ę", "E", "ł", "L", "ń", "N", "ó", "O", "ś", "S", "ź", "X", "ż", "Z")
	decoder = strings.NewReplacer("A", "ą", "C", "ć", "E", "ę", "L", "ł", "N", "ń", "O", "ó", "S", "ś", "X", "ź", "Z", "ż")
)

// alphabet has the bytes of encoded words.
const alphabet = "abcdefghijklmnopqrstuvwxyzACELNOSXZ"

// encodeWord returns a byte for each letter of a word. ok is false if a letter of the word has no byte in alphabet.
func encodeWord(word string) (letters []byte, ok bool) {
	encoded := encoder.Replace(word)
	return []byte(encoded), strings.Trim(encoded, alphabet) == ""
}

// decodeWord is the inverse of encodeWord.
func decodeWord(letters []byte) string { return decoder.Replace(string(letters)) }

// withMarks returns the bytes of the letters that marks make of a letter: XZ (ź and ż) for z, none for b.
func withMarks(letter byte) string {
	switch letter {
	case 'a', 'c', 'e', 'l', 'n', 'o', 's':
		return string(letter - 'a' + 'A')
	case 'z':
		return "XZ"
	}
	return ""
}
