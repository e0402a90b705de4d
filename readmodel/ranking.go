package readmodel

import (
	"errors"
	"strconv"

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

// AppendJSON appends the page as httpapi/CONTRACT.md#ranked has it.
func (p *RankedPage) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"results":[`...)
	for i, h := range p.Hits {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, `{"kind":"`...), events.Lists()[h.Row.list]...), `","entry":`...)
		dst = append(append(dst, h.Row.JSON()...), `,"matches":[`...)
		for j, m := range h.Matches {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, `{"field":"`...), m.Field...), `","start":`...)
			dst = strconv.AppendInt(dst, int64(m.Start), 10)
			dst = strconv.AppendInt(append(dst, `,"end":`...), int64(m.End), 10)
			dst = append(dst, '}')
		}
		dst = append(dst, "]}"...)
	}
	dst = strconv.AppendInt(append(dst, `],"total":`...), int64(p.Total), 10)
	dst = strconv.AppendBool(append(dst, `,"hasMore":`...), p.HasMore)
	dst = append(dst, `,"facets":{`...)
	for i, l := range events.Lists() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), l...), `":`...)
		dst = strconv.AppendInt(dst, int64(p.Facets[i]), 10)
	}
	dst = append(dst, `},"suggestions":[`...)
	for i, s := range p.Suggestions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	dst = append(dst, ']')
	if p.Relaxed {
		dst = append(dst, `,"relaxed":true`...)
	}
	return append(dst, '}')
}

// Passes reports whether there is a row in a place that q's filters let through, but for q.List. It
// does not look at the row itself.
func (v *View) Passes(ref RowRef, q *RankedQuery) bool {
	return v.lists[ref.List()].filters.get(ref.Slot()).match(q.Status, q.Proofs)
}
