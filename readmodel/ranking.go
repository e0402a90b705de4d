package readmodel

import (
	"errors"
	"strconv"

	"example.org/registry/events"
)

// ErrNoRanking means that there is no index to answer a RankedQuery from.
var ErrNoRanking = errors.New("there is no index of ranked search yet")

// RankedQuery asks for the entries that have every word, in any inflection, best first (httpapi/CONTRACT.md#ranked). The
// caller has checked the bounds, as those of a ListQuery. Package ranked answers it.
type RankedQuery struct {
	Words  string      // as typed
	List   events.List // "": all
	Status Status      // ignored for legit, which shows verified entries only
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
	return append(dst, "]}"...)
}

// RowRef names the place of a row in a model. Another row may take the place of one that is gone.
type RowRef uint32

// List returns the index of the row's list in events.Lists, Slot the place within the list. Slots are small numbers.
func (r RowRef) List() int    { return rowRef(r).list() }
func (r RowRef) Slot() uint32 { return rowRef(r).slot() }

// Ref names the place of the row.
func (r *Row) Ref() RowRef { return RowRef(r.ref()) }

// List returns the list that the row is of.
func (r *Row) List() events.List { return events.Lists()[r.list] }

// Text returns the texts that ranked search compares and that a Match is a place of: the name, and the reason as its
// reader sees it. Unlike the texts of exact search they are not folded.
func (r *Row) Text() (name, reason string, err error) {
	p, err := r.Public()
	return p.Name, visibleText(p.DescHTML), err
}

// ShownAt returns the row in a place, or nil if there is none that its list shows.
func (v *View) ShownAt(ref RowRef) *Row {
	if r := v.row(rowRef(ref)); r != nil && r.shown() {
		return r
	}
	return nil
}

// ShownRows calls f with every row that its list shows, in no particular order, until f returns false.
func (v *View) ShownRows(f func(*Row) bool) {
	for _, l := range v.lists {
		for _, chunk := range l.rows.chunks {
			for _, r := range chunk.values {
				if r != nil && r.shown() && !f(r) {
					return
				}
			}
		}
	}
}

// ChangedSince returns the places whose rows have changed after sequence, some of them twice, or false if that is no
// longer known.
func (v *View) ChangedSince(sequence uint64) (refs []RowRef, ok bool) {
	changes, ok := v.changes.since(sequence)
	for _, c := range changes {
		refs = append(refs, RowRef(c.ref))
	}
	return refs, ok
}

// Filtered reports whether the row in a place is there and q's filters let it through, but for q.List. list is the index
// of its list. It does not look at the row itself.
func (v *View) Filtered(ref RowRef, q *RankedQuery) (list int, ok bool) {
	list = rowRef(ref).list()
	status := q.Status
	if events.Lists()[list] == events.Legit {
		status = StatusVerified
	}
	return list, v.lists[list].filters.get(rowRef(ref).slot()).match(status, q.Proofs)
}

// SameModel reports whether both views are of one model, so that a RowRef means the same in both.
func (v *View) SameModel(o *View) bool { return v.text == o.text }
