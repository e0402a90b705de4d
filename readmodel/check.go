package readmodel

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
)

// CheckQuery looks up a person or a server on all lists at once. Search counts only if ID is empty.
type CheckQuery struct {
	ID     string // chat id, exact
	Search string // a name or chat id, or part of one, as typed
}

// CheckResult has the matches, by list in the order of events.Lists. Lists without a match are left
// out. Legit is also left out if another list has a match (httpapi/CONTRACT.md#check).
type CheckResult struct {
	Groups   []Group
	Similar  []Group // entries that do not match but have a similar name; never of legit
	Imitates []*Row  // entries of legit that the search only looks like, newest first, at most 20
}

// Group is the matches in one list, best first, at most 20.
type Group struct {
	List events.List
	Rows []*Row
}

// MaxGroup is the most entries that a check shows of one list.
const MaxGroup = 20

// Check looks up q on all lists. If no name or chat id contains the text, Check also tries the text without the
// parts that chat programs add to a name (chatParts). Its only error is ctx's.
func (v *View) Check(ctx context.Context, q CheckQuery) (CheckResult, error) {
	if q.ID != "" {
		var found rowsByList
		for r := range v.chats.find(q.ID) {
			found[r.list] = keepNewest(found[r.list], r)
		}
		return CheckResult{Groups: groupRows(found)}, nil
	}

	found, err := v.checkText(ctx, q.Search)
	if err != nil || len(found.Groups) > 0 {
		return found, err
	}

	// No entry has the text: try it without the parts that chat programs add. If that finds nothing
	// either, found may still have similar names.
	bare := strings.TrimSpace(chatParts.ReplaceAllString(q.Search, ""))
	if bare == "" || !chatParts.MatchString(q.Search) {
		return found, nil
	}

	foundBare, err := v.checkText(ctx, bare)
	if err != nil || len(foundBare.Groups)+len(foundBare.Similar)+len(foundBare.Imitates) > 0 {
		return foundBare, err
	}
	return found, nil
}

// chatParts matches the parts that chat programs add to a name: an @ before it, and a # with digits after it.
var chatParts = regexp.MustCompile(`^@|#[0-9]{1,4}$`)

// checkText looks up a text as it is, on all lists.
func (v *View) checkText(ctx context.Context, text string) (result CheckResult, err error) {
	needle := fold(text)
	queries := []textQuery{{part: nameText, needle: needle}}
	rankMatch := func(r *Row) int { return r.matchRank(needle) }
	similarTo := similarQuery{needle: needle, keys: lookalike.KeysOf(text)}

	var matching, similar rowsByList
	for i, l := range v.lists {
		matching[i], err = l.findBest(ctx, queries, rankMatch)
		if err != nil {
			return result, err
		}
		similar[i], err = l.findBest(ctx, similarTo.textQueries(i), similarTo.rankName)
		if err != nil {
			return result, err
		}
	}

	// A check shows a legit entry with a similar name as imitated, not as similar.
	trusted := listIndex(events.Legit)
	imitated := similar[trusted]
	similar[trusted] = nil
	return CheckResult{Groups: groupRows(matching), Similar: groupRows(similar), Imitates: imitated}, nil
}

// findBest returns the best rows that match any of the queries, at most MaxGroup: by rank, and newest first
// within a rank. It leaves out the rows whose rank is noRank. Its only error is ctx's.
func (l *list) findBest(ctx context.Context, queries []textQuery, rank func(*Row) int) ([]*Row, error) {
	var ranks [noRank][]*Row
	err := l.eachMatch(ctx, queries, func(slot uint32) {
		row := l.rows.get(slot)
		if n := rank(row); n != noRank {
			ranks[n] = keepNewest(ranks[n], row)
		}
	})
	if err != nil {
		return nil, err
	}

	var best []*Row
	for _, rows := range ranks {
		best = append(best, rows[:min(len(rows), MaxGroup-len(best))]...)
	}
	return best, nil
}

// rowsByList holds rows of every list, in the order of events.Lists.
type rowsByList [events.NumLists][]*Row

func groupRows(found rowsByList) (groups []Group) {
	for i, l := range events.Lists() {
		isLeftOut := l.Trusted() && len(groups) > 0 // legit is the last list
		if len(found[i]) > 0 && !isLeftOut {
			groups = append(groups, Group{l, found[i]})
		}
	}
	return groups
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

// matchRank returns how well the row matches the folded needle, which its name or its chat id contains.
func (r *Row) matchRank(needle string) int {
	if r.foldedChat() == needle {
		return rankIDEqual
	}
	return min(nameRank(r.folded, needle), rankIDContains) // the chat id has the needle if the name lacks it
}

// nameRank returns how well a form of a name matches the same form of a search: noRank if it lacks the search.
func nameRank(name, search string) int {
	i := strings.Index(name, search)
	if i < 0 {
		return noRank
	}

	if len(name) == len(search) {
		return rankNameEqual
	}
	if i == 0 {
		return rankNameStarts
	}
	return rankNameContains
}

// keepNewest inserts r into rows, the newest rows so far: at most MaxGroup, newest first. It returns rows
// unchanged if they have r already, or if MaxGroup of them are newer.
func keepNewest(rows []*Row, r *Row) []*Row {
	i, found := slices.BinarySearchFunc(rows, r, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.reported, a.reported), cmp.Compare(b.id, a.id))
	})
	if found || i == MaxGroup {
		return rows
	}
	return slices.Insert(rows[:min(len(rows), MaxGroup-1)], i, r) // in place of the oldest of MaxGroup
}

// similarQuery is a check's text, prepared for comparison with names that do not contain the text literally
// (httpapi/CONTRACT.md#similar, #imitates).
type similarQuery struct {
	needle string // folded
	keys   lookalike.Keys
}

// minKeyLen is the minimum number of code points of a key for a similar name.
const minKeyLen = 3

// textQueries returns queries that find all rows of a list that may be similar or imitated, and a few more.
func (q *similarQuery) textQueries(list int) (all []textQuery) {
	if strings.TrimFunc(q.needle, unicode.IsDigit) == "" {
		return nil // digits alone are an id, and no name looks like an id
	}

	for _, key := range q.keys.Distinct() {
		if events.Lists()[list].Trusted() {
			all = append(all, textQuery{part: keyText, needle: "\n" + key + "\n"}) // a whole key: only equal names are imitated
		} else if utf8.RuneCountInString(key) >= minKeyLen {
			all = append(all, textQuery{part: keyText, needle: key})
		}
	}
	return all
}

// rankName returns how similar the name of r is to the needle, or noRank if it is not similar.
func (q *similarQuery) rankName(r *Row) int {
	// A name of legit is imitated if it looks equal but does not contain the needle literally.
	if r.List().Trusted() {
		if r.keys.Alike(q.keys) && !strings.Contains(r.folded, q.needle) {
			return rankNameEqual
		}
		return noRank
	}

	if strings.Contains(r.names, q.needle) {
		return noRank // the row is a match already, by its name or its chat id
	}

	rank := min(keyRank(r.keys.Shape, q.keys.Shape), keyRank(r.keys.Folded, q.keys.Folded))
	if rank != rankNameEqual && !r.Verified() {
		return noRank // unverified entries are similar only if a key is equal
	}
	return rank
}

// keyRank returns how similar a name is to a search, by one key of each. The search's key must have at least half
// as many characters as the name's key.
func keyRank(nameKey, searchKey string) int {
	n := utf8.RuneCountInString(searchKey)
	if n < minKeyLen || 2*n < utf8.RuneCountInString(nameKey) {
		return noRank
	}
	return nameRank(nameKey, searchKey)
}
