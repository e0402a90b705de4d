package readmodel

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/readmodel/btree"
)

// Sort is the order of a list. The zero value is Newest.
type Sort uint8

// The orders. Oldest, PopularAsc and AZ ascend; each of the others is the exact reverse of one.
const (
	Newest Sort = iota
	Oldest
	Popular
	PopularAsc
	AZ
	ZA
)

// Status filters a list by verification. The zero value lets every entry through.
type Status uint8

// The status filters.
const (
	StatusAll Status = iota
	StatusVerified
	StatusRisk
)

// Proofs filters a list by proofs. The zero value lets every entry through.
type Proofs uint8

// The proofs filters.
const (
	ProofsAll Proofs = iota
	ProofsWith
	ProofsPrivate
)

// ListQuery asks for a page of one list. The caller has checked the bounds: Skip is not negative,
// Limit is at least 1. ID, when not empty, takes precedence over Search.
type ListQuery struct {
	List   events.List
	Search string // as typed
	ID     string // chat id, exact
	Sort   Sort
	Status Status // ignored for legit, which shows verified entries only
	Proofs Proofs
	Skip   int
	Limit  int
}

// ByViews reports whether the answer depends on view totals, as its tag then does. Whatever else of
// a query makes it so is to be named here (TestListTag).
func (q *ListQuery) ByViews() bool { return q.Sort == Popular || q.Sort == PopularAsc }

// Page is a part of a list and what it is a part of. Its rows belong to one view.
type Page struct {
	Rows    []*Row
	Total   int  // entries that match, on all pages
	HasMore bool // entries follow after this page
}

// List answers one page of a list. Its only error is ctx's: a search stops when its reader has
// gone.
func (v *View) List(ctx context.Context, q ListQuery) (Page, error) {
	if q.List.Trusted() {
		q.Status = StatusVerified // the only entries that legit ever shows
	}
	var p Page
	var err error
	switch {
	case q.ID != "":
		p = v.listByID(&q)
	case q.Search != "":
		p, err = v.search(ctx, &q)
	default:
		p = v.list(q.List).page(&q)
	}
	p.HasMore = q.Skip+len(p.Rows) < p.Total
	return p, err
}

// Totals is how many entries match under each status, whatever status was asked for.
type Totals struct{ All, Verified, Risk int }

// Totals counts what q matches with each status in place of its own; legit has no Risk. For a
// search that List has answered the counts are remembered with its result. Its only error is ctx's.
func (v *View) Totals(ctx context.Context, q ListQuery) (t Totals, err error) {
	count := func(q *ListQuery) int { return v.list(q.List).size(q) }
	switch {
	case q.ID != "":
		count = func(q *ListQuery) int { return v.listByID(q).Total }
	case q.Search != "":
		m, err := v.matching(ctx, TextQuery{listIndex(q.List), TextOfAll, fold(q.Search)})
		if err != nil {
			return t, err
		}
		count = m.counts.count
	}
	for status, n := range []*int{StatusAll: &t.All, StatusVerified: &t.Verified, StatusRisk: &t.Risk} {
		q.Status = Status(status)
		*n = count(&q)
	}
	return t, nil
}

// page jumps to the first row of the page that q asks for, and walks from there.
func (l *listView) page(q *ListQuery) Page {
	total := l.size(q)
	n := min(q.Limit, total-q.Skip)
	if n <= 0 {
		return Page{Total: total}
	}
	p := Page{Rows: make([]*Row, 0, n), Total: total}
	l.eachSlot(q, q.Skip, func(slot uint32) bool {
		p.Rows = append(p.Rows, l.rows.get(slot))
		return len(p.Rows) < n
	})
	return p
}

// eachSlot calls f with the slots of the rows in q's order that q's filters let through, from
// position skip on, until f returns false.
func (l *listView) eachSlot(q *ListQuery, skip int, f func(slot uint32) bool) {
	o, descending := q.Sort.order()
	in := classesOf(q.Status, q.Proofs)
	if descending {
		l.trees[o].Descend(in, skip, f)
	} else {
		l.trees[o].Ascend(in, skip, f)
	}
}

// size returns how many rows q's filters let through.
func (l *listView) size(q *ListQuery) int {
	o, _ := q.Sort.order()
	return l.trees[o].Len(classesOf(q.Status, q.Proofs))
}

// listByID finds the rows of the list with exactly that chat id. There is seldom more than one.
func (v *View) listByID(q *ListQuery) Page {
	var rows []*Row
	v.withChatID(q.ID, func(list int, r *Row) {
		if list == listIndex(q.List) && r.filter.match(q.Status, q.Proofs) {
			rows = append(rows, r)
		}
	})
	v.list(q.List).sort(rows, q.Sort)
	total := len(rows)
	rows = rows[min(q.Skip, total):]
	return Page{Rows: rows[:min(q.Limit, len(rows))], Total: total}
}

// sort puts rows of the list into the order of s.
func (l *listView) sort(rows []*Row, s Sort) {
	if len(rows) < 2 {
		return
	}
	type keyed struct {
		key uint64
		row *Row
	}
	o, descending := s.order()
	all := make([]keyed, len(rows))
	for i, r := range rows {
		all[i] = keyed{o.key(r, max(l.totals.get(r.slot), 0)), r}
	}
	slices.SortFunc(all, func(a, b keyed) int {
		if descending {
			a, b = b, a
		}
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return o.tie(a.row, b.row)
	})
	for i, k := range all {
		rows[i] = k.row
	}
}

// order is what a tree is sorted by. Each order serves two sorts, read from either end.
type order uint8

const (
	byTime order = iota
	byViews
	byName
	numOrders
)

func (s Sort) order() (o order, descending bool) {
	switch s {
	case Oldest:
		return byTime, false
	case Popular:
		return byViews, true
	case PopularAsc:
		return byViews, false
	case AZ:
		return byName, false
	case ZA:
		return byName, true
	default:
		return byTime, true
	}
}

// key returns the number that r, with so many views, is sorted by first.
func (o order) key(r *Row, views int64) uint64 {
	switch o {
	case byViews:
		return uint64(views)
	case byName:
		return btree.Prefix(r.collation())
	default:
		return uint64(r.reported) ^ 1<<63 // so that times before 1970 sort first
	}
}

// text returns what rows of one key are sorted by next.
func (o order) text(r *Row) string {
	if o != byName {
		return r.ID()
	}
	coll := r.collation()
	return coll[min(8, len(coll)):]
}

// item returns r's item in the tree of the order. Its class is what filters ask of it.
func (o order) item(r *Row, views int64) btree.Item {
	return btree.Item{Key: o.key(r, views), Slot: r.slot, Class: uint8(r.filter &^ bitShown)}
}

// classesOf returns the classes of the items that the filters let through.
func classesOf(s Status, p Proofs) (in btree.Classes) {
	for class := range bitShown {
		if (class | bitShown).match(s, p) {
			in |= 1 << class
		}
	}
	return in
}

const _ = uint(btree.NumClasses - bitShown) // more filters do not compile

// tie decides between rows of equal keys: names may differ after their first bytes, and what is
// left is decided by entry id, bytewise (httpapi/CONTRACT.md#sorting).
func (o order) tie(a, b *Row) int {
	if o == byName {
		if c := strings.Compare(a.collation(), b.collation()); c != 0 {
			return c
		}
	}
	return strings.Compare(a.ID(), b.ID())
}
