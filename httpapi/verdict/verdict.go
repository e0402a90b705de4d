package verdict

import (
	"slices"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/readmodel"
)

// Value is the verdict in a word, as the page has it in data-verdict.
type Value string

// The values of a verdict.
const (
	Accused     Value = "accused"
	Caution     Value = "caution"
	Risk        Value = "risk"
	Trusted     Value = "trusted"
	TrustedName Value = "trusted-name"
	Unchecked   Value = "unchecked"
	None        Value = "none"
)

// Values returns all values, the gravest first.
func Values() []Value { return []Value{Accused, Caution, Risk, Trusted, TrustedName, Unchecked, None} }

// FoundNobody reports whether nobody was found.
func (v Value) FoundNobody() bool { return v == None || v == Unchecked }

// Gravity orders values: the gravest is 0.
func (v Value) Gravity() int { return slices.Index(Values(), v) }

// Reason says which rule made the verdict, or what a caution is about.
type Reason uint8

// The reasons of a verdict.
const (
	ByID         Reason = iota // an id, a number or an address decides
	ByName                     // a literal name decides
	OtherName                  // a trusted person's id, beside the name of somebody else who is listed
	OtherAccount               // an id on no list, beside the name of an accused
	NotTheirs                  // an id on no list, beside a trusted person's name
	OtherID                    // a trusted person's id, and one on no list
	SeveralIDs                 // ids of several trusted persons
	MaybeID                    // digits, an address or a number that may be a trusted person's
	Shared                     // accused and trusted persons have this name
	LikeAccused                // the name looks like an accused's
	LikeTrusted                // the name looks like a trusted person's
	InSentence                 // words of the text are somebody's name
	Inflected                  // the words are somebody's name in another form or order
	Beside                     // a trusted person's id, beside anything else
	TooMany                    // there is more in the text than is looked at
	OneDigitOff                // an id on no list, one digit off a listed one
	Unknown                    // the text is what no list has: see paste.Kind
	NotLiteral                 // the text is no literal form
	NotNow                     // ranked search is not available
	Nobody                     // nothing was found
)

// Hit is an entry that was found.
type Hit struct {
	Row  *readmodel.Row
	Same bool   // by the id, or by the literal name
	As   string // what was typed
}

// accused reports whether the entry says something bad about somebody.
func accused(r *readmodel.Row) bool { return r.List() != events.Legit }

// gravity orders entries, the gravest first.
func gravity(r *readmodel.Row) int {
	switch {
	case !accused(r):
		return 2
	case r.Verified():
		return 0
	}
	return 1
}

// graded returns the value of accused entries.
func graded(rows []*readmodel.Row) Value {
	if slices.ContainsFunc(rows, (*readmodel.Row).Verified) {
		return Accused
	}
	return Risk
}

// Finding is a part of the text, and what it alone says. Exactly one of ID, Number and Name is set.
type Finding struct {
	ID     string // digits
	Number string // of a report or an entry
	Name   string
	Value  Value
	Reason Reason
	Hits   []Hit // the gravest first
}

// IsID reports whether the finding is an id, or leads to an entry as one does.
func (f *Finding) IsID() bool { return f.ID != "" || f.Number != "" }

// Text returns the typed text.
func (f *Finding) Text() string { return f.ID + f.Number + f.Name }

// Verdict is the answer of the page.
type Verdict struct {
	Value     Value
	Reason    Reason
	Findings  []Finding     // the gravest first
	Unchecked []paste.Token // what no list has
	Omitted   bool          // there is more than was looked up
	// Alone is a trusted person's id in a caution, to be checked alone, or "".
	Alone string
	// Namesake says that an accused has the name of the trusted person, or one like it, whom the
	// verdict is about.
	Namesake bool
	// Others are entries whose name has the words of a text for which nothing was found, and Spellings
	// other spellings of it.
	Others    []*readmodel.Row
	Spellings []string

	words []string
}

// About reports whether the verdict says of this entry that it is who was meant.
func (v *Verdict) About(f *Finding, h *Hit) bool {
	decides := f.Value == v.Value && f.Reason == v.Reason && h.Same
	switch v.Value {
	case Accused, Risk:
		return decides && accused(h.Row)
	case Trusted, TrustedName:
		return decides && !accused(h.Row)
	}
	return false
}
