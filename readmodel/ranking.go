package readmodel

import (
	"errors"

	"example.org/registry/events"
)

// ErrNoRanking means that there is no index to answer a RankedQuery from.
var ErrNoRanking = errors.New("there is no index of ranked search yet")

// RankedQuery asks for the entries that have every word, in any inflection, best first
// (httpapi/CONTRACT.md#ranked). Package ranked answers it. The caller has checked the bounds.
type RankedQuery struct {
	Words  string      // as typed
	List   events.List // "": all
	Status Status      // StatusRisk leaves out legit, whose entries are verified
	Proofs Proofs
	Skip   int
	Limit  int
}

// RankedPage is a part of the results of a RankedQuery. Its rows belong to one view. Its numbers are counted by
// the index, which may lag behind the view, so a page may have fewer rows than its numbers say.
type RankedPage struct {
	Hits        []RankedHit
	Total       int                  // matching entries on all pages
	HasMore     bool                 // whether a page follows
	Facets      [events.NumLists]int // matching entries of each list, ignoring RankedQuery.List
	Suggestions []string             // other spellings of a word, if nothing is found
	Sequence    uint64               // the lesser of the index's and the view's
}

// RankedHit is an entry and the positions of the words in it.
type RankedHit struct {
	Row     *Row
	Matches []Match // in the order of fields and places
}

// Match is the position of a word, in code points from Start up to End.
type Match struct {
	Field      MatchField
	Start, End int
}

// MatchField is the text that contains a Match.
type MatchField string

// The fields.
const (
	InName   MatchField = "name"   // the name that Row.Text returns
	InReason MatchField = "reason" // the reason that Row.Text returns
)
