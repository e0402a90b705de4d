package readmodel

import (
	"errors"

	"example.org/registry/events"
)

// ErrNoRanking means that there is no index to answer a RankedQuery from.
var ErrNoRanking = errors.New("there is no index of ranked search yet")

// RankedQuery asks for the entries that have every word, in any inflection, or else all but one,
// best first (httpapi/CONTRACT.md#ranked). The caller has checked the bounds, as those of a
// ListQuery. Package ranked answers it.
type RankedQuery struct {
	Words  string      // as typed
	List   events.List // "": all
	Status Status      // StatusRisk leaves out legit, whose entries are verified
	Proofs Proofs
	Skip   int
	Limit  int
}

// RankedPage is a part of what a RankedQuery finds. Its rows belong to one view.
type RankedPage struct {
	Hits        []RankedHit
	Total       int                  // entries that match, on all pages
	HasMore     bool                 // entries follow after this page
	Facets      [events.NumLists]int // entries that match in each list, whatever RankedQuery.List is
	Relaxed     bool                 // no entry has every word: these have all but one
	Suggestions []string             // other spellings that find something, where this one finds nothing
}

// RankedHit is an entry and where the words are in it.
type RankedHit struct {
	Row     *Row
	Matches []Match // in the order of fields and places
}

// Match is a place of a word, in code points from Start up to End.
type Match struct {
	Field      MatchField
	Start, End int
}

// MatchField is the text that a Match is a place of.
type MatchField string

// The fields.
const (
	InName   MatchField = "name"   // Row.Text's name
	InReason MatchField = "reason" // Row.Text's reason
)

// Passes reports whether there is a row in a place that q's filters let through, but for q.List. It
// does not look at the row itself.
func (v *View) Passes(ref RowRef, q *RankedQuery) bool {
	return v.lists[ref.List()].filters.get(ref.Slot()).match(q.Status, q.Proofs)
}
