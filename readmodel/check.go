package readmodel

import (
	"context"
	"strings"

	"example.org/registry/events"
	"example.org/registry/readmodel/gramindex"
)

// maxGroup is the most entries a check shows of one list (seed, limits).
const maxGroup = 20

// CheckResult is who was found, by list, in the order of events.Lists; lists without a match are
// left out, and legit too where one of the others has one (API contract, check).
type CheckResult struct {
	Groups  []Group
	Similar []Group // who did not match, but is named like it; never of legit
}

// Group is the matches in one list, best first, at most 20.
type Group struct {
	List events.List
	Rows []*Row
}

// AppendJSON appends the result as the seed's CheckResponse.
func (c CheckResult) AppendJSON(dst []byte) []byte {
	dst = appendGroups(append(dst, `{"results":`...), c.Groups)
	if len(c.Similar) > 0 {
		dst = appendGroups(append(dst, `,"similar":`...), c.Similar)
	}
	return append(dst, '}')
}

func appendGroups(dst []byte, groups []Group) []byte {
	dst = append(dst, '[')
	for i, g := range groups {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, `{"kind":"`...), g.List...), `","entries":`...)
		dst = append(appendRows(dst, g.Rows), '}')
	}
	return append(dst, ']')
}

// Check looks somebody up on all lists. The only error is ctx's.
func (v *View) Check(ctx context.Context, q CheckQuery) (CheckResult, error) {
	var found, alike [numLists][]*Row
	if q.ID != "" {
		v.checkID(q.ID, &found)
		return CheckResult{Groups: grouped(&found)}, nil
	}
	needle := Fold(q.Search)
	if err := v.checkName(ctx, needle, &found); err != nil {
		return CheckResult{}, err
	}
	if err := v.checkAlike(ctx, newLikeness(q.Search, needle), &alike); err != nil {
		return CheckResult{}, err
	}
	return CheckResult{grouped(&found), grouped(&alike)}, nil
}

func grouped(found *[numLists][]*Row) (groups []Group) {
	for i, l := range events.Lists() {
		if len(found[i]) > 0 && (l != events.Legit || len(groups) == 0) {
			groups = append(groups, Group{l, found[i]})
		}
	}
	return groups
}

func (v *View) checkID(id string, found *[numLists][]*Row) {
	v.withChatID(id, func(list int, r *Row) {
		if r.shown() {
			found[list] = append(found[list], r)
		}
	})
	for i, l := range v.lists {
		l.sort(found[i], Newest)
		found[i] = found[i][:min(maxGroup, len(found[i]))]
	}
}

func (v *View) checkName(ctx context.Context, needle string, found *[numLists][]*Row) error {
	for i, l := range events.Lists() {
		if l == events.Legit && (len(found[0]) > 0 || len(found[1]) > 0) {
			return nil
		}
		best, err := v.best(ctx, i, needle)
		if err != nil {
			return err
		}
		found[i] = best
	}
	return nil
}

// best is the list's best matches of name or chat id, in the order newest within one rank.
func (v *View) best(ctx context.Context, list int, needle string) ([]*Row, error) {
	m, err := v.matching(ctx, searchKey{list, gramindex.Names, needle})
	if err != nil {
		return nil, err
	}
	var ranks [numRanks][]*Row
	m.slots.Iterate(func(slot uint32) bool {
		if r := v.lists[list].rows.get(slot); r != nil && r.shown() {
			if rank, ok := r.rank(needle); ok {
				ranks[rank] = keepNewest(ranks[rank], r)
			}
		}
		return true
	})
	return firstOf(ranks[:]), nil
}

// The ranks of a match, best first (API contract, check).
const (
	rankIDEqual = iota
	rankNameEqual
	rankNameStarts
	rankNameContains
	rankIDContains
	numRanks
)

// rank says how well the row's name or chat id matches the folded needle, if it does.
func (r *Row) rank(needle string) (rank int, ok bool) {
	if !strings.Contains(r.nameAndChat(), needle) {
		return 0, false
	}
	name := r.foldedName()
	switch {
	case r.foldedChat() == needle:
		return rankIDEqual, true
	case name == needle:
		return rankNameEqual, true
	case strings.HasPrefix(name, needle):
		return rankNameStarts, true
	case strings.Contains(name, needle):
		return rankNameContains, true
	default:
		return rankIDContains, true
	}
}
