package readmodel

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"example.org/registry/events"
)

// CheckQuery looks up a person or a server on all lists at once. ID takes precedence if it is not
// empty.
type CheckQuery struct {
	ID     string // chat id, exact
	Search string // a name or chat id, or part of one, as typed
}

// CheckResult has the matches, by list in the order of events.Lists. Lists without a match are left
// out. Legit is also left out if another list has a match (httpapi/CONTRACT.md#check).
type CheckResult struct {
	Groups   []Group
	Similar  []Group // entries that do not match but have a similar name; never of legit
	Imitates []*Row  // entries of legit whose name the search only looks like, newest first, at most 20
}

// Group is the matches in one list, best first, at most 20.
type Group struct {
	List events.List
	Rows []*Row
}

// MaxGroup is the most entries that a check shows of one list.
const MaxGroup = 20

// Check looks up q on all lists. Where nobody's name or chat id contains the text, it is also tried
// as chat programs write names: without one @ before it and a discriminator such as #0 after it. Its
// only error is ctx's.
func (v *View) Check(ctx context.Context, q CheckQuery) (CheckResult, error) {
	if q.ID != "" {
		return CheckResult{Groups: grouped(v.checkID(q.ID))}, nil
	}
	found, err := v.checkText(ctx, q.Search)
	if err != nil || len(found.Groups) > 0 {
		return found, err
	}

	bare := withoutHandle(q.Search)
	if bare == "" || bare == q.Search {
		return found, nil
	}
	ofBare, err := v.checkText(ctx, bare)
	if err != nil || len(ofBare.Groups)+len(ofBare.Similar)+len(ofBare.Imitates) > 0 {
		return ofBare, err
	}
	return found, nil
}

// withoutHandle returns text without one leading @, and without a # and one to four digits at its end.
func withoutHandle(text string) string {
	bare := strings.TrimPrefix(text, "@")
	if at := strings.LastIndexByte(bare, '#'); at >= 0 {
		digits := bare[at+1:]
		if len(digits) >= 1 && len(digits) <= 4 && strings.Trim(digits, "0123456789") == "" {
			bare = bare[:at]
		}
	}
	if bare == text {
		return text
	}
	return strings.TrimSpace(bare)
}

func (v *View) checkText(ctx context.Context, text string) (CheckResult, error) {
	needle := fold(text)
	similarTo := newSimilarQuery(text, needle)
	var results, similar rowsByList
	for list := range v.lists {
		queries := []textQuery{{list, nameText, needle}}
		rank := func(r *Row) int { return r.matchRank(needle) }
		var err error
		if results[list], err = v.best(ctx, list, queries, rank); err != nil {
			return CheckResult{}, err
		}
		if similar[list], err = v.best(ctx, list, similarTo.queries(list), similarTo.rank); err != nil {
			return CheckResult{}, err
		}
	}

	trusted := listIndex(events.Legit)
	imitated := similar[trusted]
	similar[trusted] = nil
	return CheckResult{grouped(results), grouped(similar), imitated}, nil
}

// best returns the best of the rows of a list that match one of the queries: by rank, newest first
// within one. A rank of noRank is none. Its only error is ctx's.
func (v *View) best(ctx context.Context, list int, queries []textQuery, rank func(*Row) int) ([]*Row, error) {
	if len(queries) == 0 {
		return nil, nil
	}
	found, err := v.matching(ctx, queries...)
	if err != nil {
		return nil, err
	}
	defer v.memory.bits.Put(found)

	var ranks [noRank][]*Row
	found.each(func(slot uint32) {
		r := v.lists[list].rows.get(slot)
		if at := rank(r); at != noRank {
			ranks[at] = keepNewest(ranks[at], r)
		}
	})
	return firstOf(ranks[:]), nil
}

// rowsByList holds rows of every list, in the order of events.Lists.
type rowsByList [events.NumLists][]*Row

func grouped(found rowsByList) (groups []Group) {
	for i, l := range events.Lists() {
		if len(found[i]) > 0 && (!l.Trusted() || len(groups) == 0) {
			groups = append(groups, Group{l, found[i]})
		}
	}
	return groups
}

func (v *View) checkID(id string) (found rowsByList) {
	v.withChatID(id, func(r *Row) { found[r.list] = keepNewest(found[r.list], r) })
	return found
}

// The ranks of a match, best first (httpapi/CONTRACT.md#check).
const (
	rankIDEqual = iota
	rankNameEqual
	rankNameStarts
	rankNameContains
	rankIDContains
	noRank
)

// matchRank returns how well the row's name or chat id, one of which contains the folded needle, matches it.
func (r *Row) matchRank(needle string) int {
	name := r.folded
	switch {
	case r.foldedChat() == needle:
		return rankIDEqual
	case name == needle:
		return rankNameEqual
	case strings.HasPrefix(name, needle):
		return rankNameStarts
	case strings.Contains(name, needle):
		return rankNameContains
	default:
		return rankIDContains
	}
}

// keepNewest inserts r into rows, the newest rows so far in the order newest, if r is one of the
// newest and not in rows yet.
func keepNewest(rows []*Row, r *Row) []*Row {
	at, found := slices.BinarySearchFunc(rows, r, func(a, b *Row) int {
		if c := cmp.Compare(b.reported, a.reported); c != 0 {
			return c
		}
		return cmp.Compare(b.id, a.id)
	})
	if found || at == MaxGroup {
		return rows
	}
	return slices.Insert(rows[:min(len(rows), MaxGroup-1)], at, r)
}

// firstOf returns the first rows of all ranks, up to the size of a group.
func firstOf(ranks [][]*Row) (best []*Row) {
	for _, rows := range ranks {
		best = append(best, rows[:min(len(rows), MaxGroup-len(best))]...)
	}
	return best
}
