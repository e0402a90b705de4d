// Package lexicon returns the lemmas of a word's forms: "sklep" for sklepu, sklepem and sklepach. A
// Lexicon of four million forms takes 2.5 MB. It is read in place, so opening it takes hardly any
// memory.
//
// # The file
//
// The file has a line that names its source, a line for each set of rules, an empty line, and a
// transducer of package vellum from forms to the numbers of their sets. A rule turns a form into a
// lemma: a letter for the number of letters to cut off the end (A: none, B: one …), then the text
// to append. A set has a rule for each lemma that the form may have. Words that are inflected alike
// therefore share the ends of their paths.
//
// Forms and lemmas consist of the letters a to z and the nine Polish ones with marks, in lower
// case. In the transducer each is a byte: letters with marks are capitals (see encode).
package lexicon

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/vellum"
)

// Lexicon is an open lexicon. It does not change; any goroutine may use it.
type Lexicon struct {
	source string
	sets   []string
	forms  *vellum.FST
}

var errDamaged = errors.New("lexicon: it is damaged")

// Open opens a lexicon in file, which must not change.
func Open(file []byte) (*Lexicon, error) {
	head, transducer, ok := bytes.Cut(file, []byte("\n\n"))
	if !ok {
		return nil, errDamaged
	}
	source, sets, _ := strings.Cut(string(head), "\n")
	forms, err := vellum.Load(transducer)
	if err != nil {
		return nil, fmt.Errorf("lexicon: %w", err)
	}
	return &Lexicon{source, strings.Split(sets, "\n"), forms}, nil
}

// Source returns a line that names the source of the lexicon.
func (l *Lexicon) Source() string { return l.source }

// Lemmas appends the lemmas of a form, as spelled, to dst. An unknown form has none.
func (l *Lexicon) Lemmas(dst []string, form string) []string {
	key, ok := encode(make([]byte, 0, 32), form)
	if !ok {
		return dst
	}
	if set, ok, err := l.forms.Get(key); ok && err == nil {
		dst = l.apply(dst, key, set)
	}
	return dst
}

// Spellings appends the forms that equal this one except for marks that it lacks: zadał and żądał
// for "zadal".
func (l *Lexicon) Spellings(dst []string, form string) []string {
	key, ok := encode(make([]byte, 0, 32), form)
	if !ok || len(key) > maxSpelled {
		return dst
	}
	return l.walk(dst, key, 0, l.forms.Start())
}

// maxSpelled bounds the letters of a form.
const maxSpelled = 40

// walk continues from the state reached by the first at letters of key.
func (l *Lexicon) walk(dst []string, key []byte, at, state int) []string {
	if at == len(key) {
		if l.forms.IsMatch(state) {
			dst = append(dst, decode(key))
		}
		return dst
	}
	letter := key[at]
	for _, spelled := range append([]byte{letter}, marked(letter)...) {
		if next := l.forms.Accept(state, spelled); l.forms.CanMatch(next) {
			key[at] = spelled
			dst = l.walk(dst, key, at+1, next)
		}
	}
	key[at] = letter
	return dst
}

// apply appends the lemmas that a set of rules makes of a form.
func (l *Lexicon) apply(dst []string, key []byte, set uint64) []string {
	if set >= uint64(len(l.sets)) {
		return dst
	}
	for rule := range strings.SplitSeq(l.sets[set], " ") {
		if rule != "" && int(rule[0]-noCut) <= len(key) {
			dst = append(dst, decode(key[:len(key)-int(rule[0]-noCut)])+rule[1:])
		}
	}
	return dst
}

// noCut begins a rule that cuts off no letter.
const noCut = 'A'

// rule returns the rule that turns form into lemma.
func rule(form, lemma string) string {
	n := 0
	for n < len(form) && n < len(lemma) && form[n] == lemma[n] {
		n++
	}
	for !utf8.RuneStart(append([]byte(form), 'a')[n]) || !utf8.RuneStart(append([]byte(lemma), 'a')[n]) {
		n--
	}
	return string(rune(noCut+utf8.RuneCountInString(form[n:]))) + lemma[n:]
}

// Write writes a lexicon of the lemmas of forms. The same forms give the same bytes. It skips forms
// that are too long, and forms where the form or a lemma has letters that a lexicon cannot encode.
// It returns the number skipped.
func Write(w io.Writer, source string, lemmas map[string][]string) (left int, err error) {
	type form struct {
		key []byte
		set string
	}
	forms, uses := make([]form, 0, len(lemmas)), map[string]int{}
	for text, lemmas := range lemmas {
		key, ok := encode(nil, text)
		rules := make([]string, 0, len(lemmas))
		for _, lemma := range lemmas {
			_, good := encode(nil, lemma)
			ok = ok && good
			rules = append(rules, rule(text, lemma))
		}
		if !ok || len(key) > maxSpelled {
			left++
			continue
		}
		slices.Sort(rules)
		f := form{key, strings.Join(slices.Compact(rules), " ")}
		uses[f.set]++
		forms = append(forms, f)
	}
	sets := slices.SortedFunc(maps.Keys(uses), func(a, b string) int { return cmp.Or(cmp.Compare(uses[b], uses[a]), strings.Compare(a, b)) })
	numbers := map[string]uint64{}
	for i, set := range sets {
		numbers[set] = uint64(i)
	}
	if _, err := fmt.Fprintf(w, "%s\n%s\n\n", source, strings.Join(sets, "\n")); err != nil {
		return left, err
	}
	// A larger table writes fewer equal states twice.
	builder, err := vellum.New(w, &vellum.BuilderOpts{Encoder: 1, RegistryTableSize: min(len(forms)+1, 200_000), RegistryMRUSize: 8})
	if err != nil {
		return left, err
	}
	slices.SortFunc(forms, func(a, b form) int { return bytes.Compare(a.key, b.key) })
	for _, f := range forms {
		if err := builder.Insert(f.key, numbers[f.set]); err != nil {
			return left, err
		}
	}
	return left, builder.Close()
}

// encode appends the letters of a word, a byte each. ok is false if the word has other letters.
func encode(dst []byte, word string) (letters []byte, ok bool) {
	for _, r := range word {
		if r >= 'a' && r <= 'z' {
			dst = append(dst, byte(r))
			continue
		}
		at := strings.IndexRune(marks, r)
		if at < 0 {
			return nil, false
		}
		dst = append(dst, capitals[at/2]) // each has two bytes
	}
	return dst, true
}

// The letters with marks, and their bytes.
const (
	marks    = "ąćęłńóśźż"
	capitals = "ACELNOSXZ"
)

// decode is the inverse of encode.
func decode(letters []byte) string {
	var b strings.Builder
	for _, c := range letters {
		if at := strings.IndexByte(capitals, c); at >= 0 {
			b.WriteString(marks[2*at : 2*at+2])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// marked returns the bytes of a letter with the marks that it can have.
func marked(letter byte) string {
	switch letter {
	case 'a', 'c', 'e', 'l', 'n', 'o', 's':
		return string(letter - 'a' + 'A')
	case 'z':
		return "XZ"
	}
	return ""
}
