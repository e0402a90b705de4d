package paste

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/readmodel/lookalike"
)

// around is what people put around a name: quotes, brackets, and what makes text bold.
const around = "\"'`´‘’‚‛“”„‟«»‹›()[]{}<>*"

// readings returns the ways to understand a name that stands alone: as it is, without a label, an
// @, quotes or brackets, and then, cleaned, without anything around it and the number of an old
// tag.
func (rd *Reader) readings(text string, cleaned bool) (names []Name) {
	add := func(text string, cleaned bool) {
		text = spaced(text)
		if !slices.ContainsFunc(names, func(n Name) bool { return n.Text == text }) {
			names = append(names, Name{text, cleaned})
		}
	}
	add(text, cleaned)
	at := "@"
	for {
		next := strings.TrimSpace(strings.Trim(text, around))
		next = next[len(rd.number.FindString(next)):]
		if label := rd.label.FindString(next); label != "" && label != next {
			next = next[len(label):]
		}
		if after, ok := strings.CutPrefix(next, at); ok && at != "" {
			next, at = after, "" // one
		}
		if next = strings.TrimSpace(next); next == text || next == "" {
			break
		}
		text = next
		add(text, cleaned)
	}
	bare := rd.bare(rd.trailing.ReplaceAllString(text, ""))
	add(bare, true)
	if shown := rd.bare(lookalike.Visible(bare)); shown != bare {
		add(shown, true)
	}
	return names
}

// bare returns a name without what people put around it: @, quotes, punctuation, emoji, and the
// number of an old tag.
func (rd *Reader) bare(name string) string {
	name = trimmed(name)
	for i := rd.tag.FindStringIndex(name); i != nil; i = rd.tag.FindStringIndex(name) {
		name = trimmed(name[:i[0]])
	}
	return spaced(name)
}

func trimmed(name string) string {
	name = strings.TrimFunc(name, func(r rune) bool { return !wordly(r) })
	return strings.TrimLeftFunc(name, unicode.IsMark)
}

// Sentences of at most maxListed words may list names. Of longer ones only words count that are
// nothing but names: an @word, or a word such as nocny.ryś or zenek77.
const (
	maxListed = 6
	maxSpan   = 3 // words of a name within a sentence
)

// addWords adds the words of a part, and up to three neighbouring ones, as somebody whom it may
// mean.
func (rd *Reader) addWords(p *Paste, whole part) {
	words := strings.Fields(whole.text)
	if len(words) < 2 {
		return
	}
	for _, word := range words {
		bare := rd.bare(lookalike.Visible(word))
		switch at, ok := strings.CutPrefix(strings.TrimLeft(word, around), "@"); {
		case ok:
			at = strings.TrimRightFunc(at, func(r rune) bool { return !wordly(r) })
			p.addName([]Name{{at, false}, {bare, true}}, Named, whole.subject)
		case len(words) <= maxListed && !joins(bare) && !Digits(bare) || nicklike(bare):
			p.addName([]Name{{bare, true}}, Guessed, whole.subject)
		}
	}
	if len(words) > maxListed {
		return
	}
	for size := 2; size <= min(maxSpan, len(words)-1); size++ {
		for at := 0; at+size <= len(words); at++ {
			span := rd.bare(lookalike.Visible(strings.Join(words[at:at+size], " ")))
			if strings.ContainsFunc(span, unicode.IsLetter) {
				p.addName([]Name{{span, true}}, Guessed, whole.subject)
			}
		}
	}
}

// joins reports whether a word only stands between names.
func joins(word string) bool { return word == "i" || word == "oraz" || word == "and" }

// nicklike reports whether a word is no word of a sentence: letters with digits, dots or strokes
// among them.
func nicklike(word string) bool {
	return utf8.RuneCountInString(word) >= 3 && strings.ContainsFunc(word, unicode.IsLetter) &&
		strings.ContainsFunc(word, func(r rune) bool { return unicode.IsDigit(r) || strings.ContainsRune("._-#", r) })
}
