package textindex

import (
	"strings"
	"unicode/utf8"

	"example.org/registry/readmodel"
)

// Query is a search for a needle in any number of blocks, one after another. One goroutine uses it.
type Query struct {
	text       readmodel.TextOf
	needle     string
	names      []span   // a text that contains the needle in its names has a gram of each
	ordered    bool     // the rarest first, as counted in the first block
	exactNames bool     // and only these texts contain it
	nameRuns   []uint32 // for the sieves; if empty, they rule out nothing
	idRuns     []uint32
	rest       method // how the needle is found in the words
	grams      []span // for byGrams

	answers []answer // of the vocabularies of the blocks so far: at most two, while a new one takes over
	*Scratch
}

// Scratch is the memory of a Query in use. A later Query may reuse it. The zero value is ready.
type Scratch struct {
	choices         []choice
	lists           []int32
	found, narrowed readmodel.Slots
}

// method is a way to find a needle in the words of a text.
type method uint8

const (
	notAtAll  method = iota // only names are searched
	byGrams                 // the needle is one character
	byWord                  // a text contains the needle if it has one of some words or boundaries
	byWords                 // the needle has a space: a text that contains it has a word of each condition
	unindexed               // the index cannot tell
)

// NewQuery makes a search of text for needle, which is folded and not empty.
func NewQuery(text readmodel.TextOf, needle string, s *Scratch) *Query {
	q := &Query{text: text, needle: needle, names: spansOf(needle, inNames), exactNames: exact(needle) && text != readmodel.TextOfChatIDs, Scratch: s}
	length, spaced := utf8.RuneCountInString(needle), strings.Contains(needle, " ")
	if length >= nameRun || text == readmodel.TextOfChatIDs {
		q.nameRuns, q.idRuns = runsOf(needle, nameRun), runsOf(needle, idRun)
	}
	switch {
	case text != readmodel.TextOfAll:
		q.rest = notAtAll
	case length < maxExact && spaced:
		q.rest = unindexed // searches do not end with a space
	case length == 1:
		q.rest, q.grams = byGrams, spansOf(needle, 0)
	case spaced && !withinReach(needle):
		q.rest = byWords
	default:
		q.rest = byWord
	}
	return q
}

// condition is a set of words, or boundaries; a text meets it if it has one of them.
type condition struct {
	kind  gram
	words wordSet
}

// answer is the result of looking up the needle in a Vocabulary.
type answer struct {
	vocabulary *Vocabulary
	conditions []condition
}

// answer looks up the needle in a Vocabulary, once for all blocks that use it.
func (q *Query) answer(v *Vocabulary) *answer {
	for i := range q.answers {
		if q.answers[i].vocabulary == v {
			return &q.answers[i]
		}
	}
	q.answers = append(q.answers, answer{v, q.ask(v.words.published.Load(), v.boundaries.published.Load())})
	return &q.answers[len(q.answers)-1]
}

// ask returns the conditions of the needle.
func (q *Query) ask(words, boundaries *lexicon) (all []condition) {
	pieces := strings.Split(q.needle, " ")
	last := len(pieces) - 1
	if last == 0 {
		return []condition{{wordKind, words.containing([]byte(q.needle))}}
	}
	for i, right := range pieces[1:] {
		left, right := lastRunes(pieces[i], reach), firstRunes(right, reach)
		if i > 0 && left == pieces[i] {
			left = string(separator) + left // it is a whole word
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

// reach is how many characters a boundary has on either side.
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
