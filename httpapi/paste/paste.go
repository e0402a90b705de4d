// Package paste parses texts that people paste into the search field of the site: a mention, an
// address, a tag, an id with dashes in it, several names, a sentence. It cuts the text into
// stretches and returns what to look up before the text can be explained. Start with NewReader,
// then Reader.Read.
//
// # Promises
//
//   - The stretches cover every character of the text exactly once, in its order.
//   - Every grouping of digits that makes [MinDigits] to [MaxDigits] is looked up, whatever lies
//     between them except letters, and every run of 1 to [MaxWords] words, whatever lies between them.
//   - Only parts that are understood hide their content: mentions, the platform's and the site's own
//     addresses without a query, the numbers of roles, channels, commands and times.
//   - If the text exceeds the bounds, [Paste.Omitted] is set; nothing is dropped silently.
//   - Only the first [MaxText] code points are read, before normalization and after it, in time
//     linear in them.
//
// # Why
//
// A search without a match because of a comma is a false all-clear, and one that looks up what it
// knows and drops the rest vouches for impostors. So the reader accounts for the whole text, and
// records of everything to look up whether it was typed as an id or a name, or only may be one.
// Package verdict draws the conclusions.
//
// The API takes its parameters literally, since programs can clean up their own texts; people
// cannot be expected to.
//
// # The parts
//
//   - paste.go: Paste, its stretches and what to look up.
//   - clean.go: the text without invisible characters, entities and escapes, and the original
//     position of each character.
//   - digits.go: ids in groups, and other numbers. addresses.go: mentions and addresses.
//   - names.go: parts, quoted names and runs of words.
//   - unknown.go: things that the registry does not have, such as telephone numbers.
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
	MaxIDs     = 20              // on their own
	MaxLookups = 1000
	MaxWords   = 5   // of a name within a longer text
	MinDigits  = 15  // of an id
	MaxDigits  = 20  // of an id
	maxName    = 200 // code points: no entry's name is longer
	maxID      = bounds.MaxID
)

// How is the way in which something to look up occurs in the text.
type How uint8

// The ways in which something occurs in a text.
const (
	// Typed is an id whose digits are together, or a name that is the whole text or a part of it,
	// quoted, labeled, or an @word.
	Typed How = iota
	// Maybe is a run of words of a longer text, or digits that only may be an id.
	Maybe
	// Word is a word of a longer text that the dictionary knows, in lower case.
	Word
)

// Span is a piece of the text, in bytes.
type Span struct{ From, To int }

// Covers reports whether all of other lies within s.
func (s Span) Covers(other Span) bool { return s.From <= other.From && other.To <= s.To }

// Sought is something to look up: an id, the number of an entry, or a name. Exactly one of ID,
// Number and Names is set.
type Sought struct {
	ID     string
	Server bool        // the id counts only for a server
	Short  bool        // the id counts only if it is listed: too few digits, or some of a time or a word
	Number string      // an entry id, or the number of a report
	List   events.List // with an own address: the list of the entry
	Names  []string    // the readings of the name, without invisible characters
	Raw    []string    // a name as typed, and without labels, quotes and brackets
	How    How
	Spans  []Span // its positions
}

// Text returns the text in the form that people know.
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

// What is the kind of a stretch.
type What uint8

// The kinds of a stretch.
const (
	Filler    What = iota // white space, punctuation, emoji, labels, times
	Words                 // names if they are listed, else filler
	Identity              // digits that are or may be an id, a mention, an address of the platform
	Unchecked             // of a Kind that no list has
	Beyond                // not read
)

// Stretch is a piece of the text.
type Stretch struct {
	Span
	What What
	Kind Kind
}

// Paste is a text with its stretches, and the things to look up.
type Paste struct {
	Text      string // as typed, a line for each field
	Asked     string // from the field for everything, or else from that for an id
	Stretches []Stretch
	Sought    []Sought // ids first
	Omitted   bool     // the text has more than is looked up
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

// SingleID reports whether a text is just one id, alone, in a mention or in an address. Looking
// that up needs no turn among searches.
func SingleID(text string) bool {
	if len(text) > 2*maxID {
		return false
	}
	_, ok := events.ReferredChatID(text)
	return ok || Digits(text)
}

// Equal reports whether two texts are one name: equal in NFC, ignoring case and white space.
func Equal(a, b string) bool { return a == b || Folded(a) == Folded(b) }

// Folded returns the form in which Equal compares a name.
func Folded(s string) string { return spaced(casefold.String(norm.NFC.String(s))) }

// spaced returns s with one space for each run of white space, and none around it.
func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// Digits reports whether s is one or more of 0 to 9.
func Digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
