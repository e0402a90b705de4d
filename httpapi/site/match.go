package site

import (
	"slices"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// match is a found row and the list it is on.
type match struct {
	list events.List
	row  *readmodel.Row
}

// split parts those of that very name or id from those whose name or id contains what was asked for:
// these may be somebody else, and must not look like an answer.
func split(p *CheckPage) (exact, partial []match) {
	for _, g := range p.Found.Groups {
		for _, r := range g.Rows {
			if p.exact(r) {
				exact = append(exact, match{g.List, r})
			} else {
				partial = append(partial, match{g.List, r})
			}
		}
	}
	slices.SortStableFunc(exact, func(a, b match) int { return gravity(a) - gravity(b) })
	return exact, partial
}

// sameID: whoever typed an id and found it needs no warning about names.
func sameID(exact []match, search string) bool {
	return len(exact) > 0 && !slices.ContainsFunc(exact, func(m match) bool { return m.row.ChatID() != search })
}

// endless: a list has as many exact matches as a check shows, so there may be more.
func endless(p *CheckPage) bool {
	return slices.ContainsFunc(p.Found.Groups, func(g readmodel.Group) bool {
		return len(g.Rows) == maxGroup && p.exact(g.Rows[maxGroup-1])
	})
}

// exact: the row is of that very name or id.
func (p *CheckPage) exact(r *readmodel.Row) bool { return p.Query.ID != "" || r.Named(p.Query.Search) }

// gravity puts what was verified before what was only reported: who reads one entry reads that.
func gravity(m match) int {
	if class(m.list, m.row.Verified()) == "scam" {
		return 0
	}
	return 1
}

func (s *Site) matches(found []match) ([]piece, error) {
	pieces := make([]piece, len(found))
	for i, m := range found {
		link := entryLink(m.list, m.row.ChatID())
		var err error
		if pieces[i], err = s.piece(m.list, m.row, link, link, false); err != nil {
			return nil, err
		}
	}
	return pieces, nil
}
