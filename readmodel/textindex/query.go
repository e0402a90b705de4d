package textindex

import (
	"strings"
	"unicode/utf8"
)

// Query is a search for a needle in any number of blocks, one after another. One goroutine uses it.
type Query struct {
	needle     string
	names      []span // a text that contains the needle in its names has a gram of each
	exactNames bool   // and no other text has
	rest       method // of finding the needle in the words
	grams      []span // for byGrams

	answers []answer // of the vocabularies of the blocks so far: two at most, while a new one takes over

	// Scratch.
	choices []choice
	lists   []int32
	found   Set
}

// method says what finds a needle in the words of a text.
type method uint8

const (
	notAtAll  method = iota // only names are searched
	byGrams                 // it is shorter than three characters
	byWord                  // texts that have one of some words, or boundaries, contain it
	byWords                 // it has a space: texts that have a word of each condition may contain it, or do where there is no doubt
	unindexed               // nothing tells
)

// NewQuery makes a search of text for needle, which is folded and not empty.
func NewQuery(text Text, needle string) *Query {
	q := &Query{needle: needle, names: spansOf(needle, inNames), exactNames: exact(needle)}
	short, spaced := utf8.RuneCountInString(needle) < maxExact, strings.Contains(needle, " ")
	switch {
	case text == Names:
		q.rest = notAtAll
	case short && spaced:
		q.rest = unindexed // nobody searches for a space at the end of a word
	case short:
		q.rest, q.grams = byGrams, spansOf(needle, 0)
	case spaced && !withinReach(needle):
		q.rest = byWords
	default:
		q.rest = byWord
	}
	return q
}

// condition is that a text has one of some words, or boundaries.
type condition struct {
	kind  gram
	words wordSet
}

// answer is what a Vocabulary says of the needle.
type answer struct {
	vocabulary *Vocabulary
	conditions []condition
	doubts     []condition // a text that meets all conditions and none of these contains the needle; nil: nothing is sure
}

// answer asks a Vocabulary once for all blocks that were made with it.
func (q *Query) answer(v *Vocabulary) answer {
	for _, a := range q.answers {
		if a.vocabulary == v {
			return a
		}
	}
	words, boundaries := v.words.published.Load(), v.boundaries.published.Load()
	a := answer{v, q.ask(words, boundaries), nil}
	if left, right, _ := strings.Cut(q.needle, " "); q.rest == byWords && !strings.Contains(right, " ") {
		a.doubts = doubts(words, left, right)
	}
	q.answers = append(q.answers, a)
	return a
}

// doubts is, for a needle of two pieces, the words that may stand at its boundary without being what the needle says: those
// that end as the left piece does, or begin as the right one does, as far as a boundary reaches and no farther.
func doubts(words *lexicon, left, right string) []condition {
	sides := []condition{}
	but := func(few, piece string) {
		all, these := words.containing([]byte(few)), words.containing([]byte(piece))
		sides = append(sides, condition{wordKind, all.without(&these)})
	}
	if end := lastRunes(left, reach); end != left {
		but(end+string(separator), left+string(separator))
	}
	if start := firstRunes(right, reach); start != right {
		but(string(separator)+start, string(separator)+right)
	}
	return sides
}

func (q *Query) ask(words, boundaries *lexicon) (all []condition) {
	pieces := strings.Split(q.needle, " ")
	last := len(pieces) - 1
	if last == 0 {
		return []condition{{wordKind, words.containing([]byte(q.needle))}}
	}
	for i, right := range pieces[1:] {
		left, right := lastRunes(pieces[i], reach), firstRunes(right, reach)
		if i > 0 && left == pieces[i] {
			left = string(separator) + left // it is all of a word
		}
		if i+1 < last && right == pieces[i+1] {
			right += string(separator)
		}
		all = append(all, condition{boundaryKind, boundaries.containing([]byte(left + " " + right))})
	}
	if q.rest == byWord {
		return all
	}
	for i, piece := range pieces {
		if i > 0 {
			piece = string(separator) + piece
		}
		if i < last {
			piece += string(separator)
		}
		if utf8.RuneCountInString(piece) > maxExact { // shorter ones are in too many words to rule out much
			all = append(all, condition{wordKind, words.containing([]byte(piece))})
		}
	}
	return all
}

// reach is how many characters of a word a boundary has, on either side.
const reach = 2

// withinReach reports whether a boundary can contain all of the needle.
func withinReach(needle string) bool {
	left, right, _ := strings.Cut(needle, " ")
	return utf8.RuneCountInString(left) <= reach && utf8.RuneCountInString(right) <= reach && !strings.Contains(right, " ")
}

func firstRunes(s string, n int) string {
	for at := range s {
		if n == 0 {
			return s[:at]
		}
		n--
	}
	return s
}

func lastRunes(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}
