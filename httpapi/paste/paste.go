// Package paste reads what people paste into the search field of the site: a mention, an address, a
// tag, an id with dashes in it, several names, a sentence. It cuts the text into stretches and says
// what has to be looked up before the text is explained. Start with NewReader, then Reader.Read.
//
// # Promises
//
//   - The stretches cover every character of the text exactly once, in its order.
//   - Every grouping of digits that makes [MinDigits] to [MaxDigits] is sought, whatever stands
//     between them but letters, and every run of 1 to [MaxWords] words, whatever stands between them.
//   - Only what is understood hides what is in it: mentions, the platform's and the site's own
//     addresses without a query, the numbers of roles, channels, commands and times.
//   - What exceeds the bounds sets [Paste.Omitted]; nothing is dropped in silence.
//   - Only the first [MaxText] code points are read, before normalization and after it, in time
//     linear in them.
//
// # Why
//
// A search that finds nobody because of a comma is a false all-clear, and one that looks for what it
// knows and drops the rest vouches for impostors. So the reader accounts for the whole text, and
// says of everything that it seeks whether it was typed as an id or a name, or only may be one.
// Package verdict decides what follows from that.
//
// The API takes its parameters literally, since programs can clean up their own texts; the page
// cannot expect that of people.
//
// # The parts
//
//   - paste.go: Paste, its stretches and what is sought.
//   - clean.go: the text without invisible characters, entities and escapes, and where each
//     character stood.
//   - digits.go: ids in groups, and other numbers. addresses.go: mentions and addresses.
//   - names.go: parts, quoted names and runs of words.
//   - unknown.go: what the registry does not keep, such as telephone numbers.
package paste

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel/casefold"
)

// The bounds of a paste.
const (
	MaxText    = bounds.MaxValue // code points
	MaxIDs     = 20              // that stand for themselves
	MaxLookups = 1000
	MaxWords   = 5   // of a name within a longer text
	MinDigits  = 15  // of an id
	MaxDigits  = 20  // of an id
	maxName    = 200 // code points: no entry's name is longer
	maxID      = bounds.MaxID
)

// How says how something that is sought stands in the text.
type How uint8

// The ways in which something stands in a text.
const (
	// Typed is an id whose digits stand together, and a name that is the whole text or a part of it,
	// quoted, labeled, or an @word.
	Typed How = iota
	// Maybe is a run of words of a longer text, and digits that only may be an id.
	Maybe
	// Word is a word of a longer text that the dictionary knows, in lower case.
	Word
)

// Span is a piece of the text, in bytes.
type Span struct{ From, To int }

// Covers reports whether all of other lies within s.
func (s Span) Covers(other Span) bool { return s.From <= other.From && other.To <= s.To }

// Sought is an id, the number of an entry, or a name. Of ID, Number and Names one is set.
type Sought struct {
	ID     string
	Server bool        // the id counts only for a server
	Short  bool        // the id counts only where somebody has it: too few digits, or some of a time or a word
	Number string      // an entry id, or the number of a report
	List   events.List // with an own address: the list of the entry
	Names  []string    // the name in its readings, without what is invisible
	Raw    []string    // a name as it was typed, and without labels, quotes and brackets
	How    How
	Spans  []Span // where it stands
}

// Text returns what is sought as people know it.
func (s *Sought) Text() string {
	switch {
	case s.ID != "":
		return s.ID
	case s.Number != "":
		return s.Number
	case len(s.Raw) > 0:
		return s.Raw[len(s.Raw)-1]
	}
	return s.Names[len(s.Names)-1]
}

// What says what a stretch of the text is.
type What uint8

// The kinds of a stretch.
const (
	Filler    What = iota // white space, punctuation, emoji, labels, times
	Words                 // names where somebody has them, else filler
	Identity              // digits that are or may be an id, a mention, an address of the platform
	Unchecked             // of a Kind that no list has
	Beyond                // not looked at
)

// Stretch is a piece of the text.
type Stretch struct {
	Span
	What What
	Kind Kind
}

// Paste is a text with its stretches, and what is sought of it.
type Paste struct {
	Text      string // as typed, a line for each field
	Asked     string // of the field for everything, or else of that for an id
	Stretches []Stretch
	Sought    []Sought // ids first
	Omitted   bool     // there is more in the text than is looked up
	Sentence  bool     // it has a part of more than MaxWords words
}

// Kind returns the greatest kind of the stretches that f accepts.
func (p *Paste) Kind(f func(Stretch) bool) (kind Kind) {
	for _, s := range p.Stretches {
		if s.Kind > kind && f(s) {
			kind = s.Kind
		}
	}
	return kind
}

// SingleID reports whether a text is nothing but one id, as it is, in a mention or in an address:
// to look that up needs no turn among searches.
func SingleID(text string) bool {
	if len(text) > 2*maxID {
		return false
	}
	_, ok := events.ReferredChatID(text)
	return ok || Digits(text)
}

// Equal reports whether two texts are one name: equal in NFC, but for case and white space.
func Equal(a, b string) bool { return a == b || Folded(a) == Folded(b) }

// Folded returns the form in which Equal compares a name.
func Folded(s string) string { return spaced(casefold.String(norm.NFC.String(s))) }

// spaced returns s with one space for each run of white space, and none around it.
func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// Digits reports whether s is one or more of 0 to 9.
func Digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
