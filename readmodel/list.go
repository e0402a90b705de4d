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

// The orders. Oldest, PopularAsc and AZ ascend; each of the others is the reverse of one of them.
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
// and Limit is at least 1. ID takes precedence over Search if it is not empty.
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

// ByViews reports whether the result depends on view totals; its tag then does, too. A new
// parameter that makes a result depend on them must be named here (TestListTag).
func (q *ListQuery) ByViews() bool { return q.Sort == Popular || q.Sort == PopularAsc }

// Page is a part of a list with its context. Its rows belong to one view.
type Page struct {
	Rows    []*Row
	Total   int  // matching entries on all pages
	HasMore bool // whether a page follows
}

// List returns one page of a list. Its only error is ctx's: a search stops when its client has
// disconnected.
func (v *View) List(ctx context.Context, q ListQuery) (Page, error) { return v.listPage(ctx, &q, nil) }

// Totals is how many entries match under each status.
type Totals struct{ All, Verified, Risk int }

// ListTotals is List, and counts the matches under each status, ignoring q's own; legit has no Risk.
func (v *View) ListTotals(ctx context.Context, q ListQuery) (p Page, t Totals, err error) {
	p, err = v.listPage(ctx, &q, &t)
	return p, t, err
}

// listPage returns one page of a list, and counts the totals unless t is nil.
func (v *View) listPage(ctx context.Context, q *ListQuery, t *Totals) (p Page, err error) {
	if q.List.Trusted() {
		q.Status = StatusVerified // legit shows no others
	}
	l := v.list(q.List)
	count := l.size
	switch {
	case q.ID != "":
		var counts filterCounts
		p, counts = v.pageWithID(l, q)
		count = counts.count
	case q.Search != "":
		m, err := v.matching(ctx, textQuery{listIndex(q.List), allText, fold(q.Search)})
		if err != nil {
			return p, err
		}
		defer v.memory.bits.Put(m.bits)
		p, count = l.pageOf(&m, q), m.counts.count
	default:
		p = l.page(q)
	}
	p.HasMore = q.Skip+len(p.Rows) < p.Total
	if t != nil {
		under := *q
		for status, n := range []*int{StatusAll: &t.All, StatusVerified: &t.Verified, StatusRisk: &t.Risk} {
			under.Status = Status(status)
			*n = count(&under)
		}
	}
	return p, nil
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

// eachSlot calls f with the slots of the rows that pass q's filters, in q's order from position
// skip on, until f returns false.
func (l *listView) eachSlot(q *ListQuery, skip int, f func(slot uint32) bool) {
	o, descending := q.Sort.order()
	in := classesOf(q.Status, q.Proofs)
	if descending {
		l.trees[o].Descend(in, skip, f)
	} else {
		l.trees[o].Ascend(in, skip, f)
	}
}

// size returns how many rows pass q's filters.
func (l *listView) size(q *ListQuery) int {
	o, _ := q.Sort.order()
	return l.trees[o].Len(classesOf(q.Status, q.Proofs))
}

// pageWithID returns the page of q among the rows of l with exactly its chat id, and counts all of
// these. There is seldom more than one; many are paged like the matches of a search.
func (v *View) pageWithID(l *listView, q *ListQuery) (p Page, counts filterCounts) {
	var rows []*Row
	var many *bitset
	if v.ManyWithID(q.ID) {
		many = v.memory.takeBits(len(l.rows.chunks) * chunkLen)
		defer v.memory.bits.Put(many)
	}
	v.withChatID(q.ID, func(list int, r *Row) {
		if list != listIndex(q.List) {
			return
		}
		counts[r.filter]++
		switch {
		case many != nil:
			many.add(r.slot)
		case r.filter.match(q.Status, q.Proofs):
			rows = append(rows, r)
		}
	})
	if many != nil {
		return l.pageOf(&matchSet{many, counts}, q), counts
	}
	l.sort(rows, q.Sort)
	total := len(rows)
	rows = rows[min(q.Skip, total):]
	return Page{Rows: rows[:min(q.Limit, len(rows))], Total: total}, counts
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
		all[i] = keyed{o.key(r, l.totals.get(r.slot).views), r}
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

// order is the criterion by which a tree is sorted. Each order serves two sorts, read from either
// end.
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

// key returns the number by which r, with a view total of views, is sorted first.
func (o order) key(r *Row, views int64) uint64 {
	switch o {
	case byViews:
		return uint64(views)
	case byName:
		return btree.Prefix(r.collation)
	default:
		return uint64(r.reported) ^ 1<<63 // sorts times before 1970 first
	}
}

// text returns the text by which rows of equal keys are sorted next.
func (o order) text(r *Row) string {
	if o != byName {
		return r.ID()
	}
	coll := r.collation
	return coll[min(8, len(coll)):]
}

// item returns r's item in the tree of the order. Its class holds the properties that filters test.
func (o order) item(r *Row, views int64) btree.Item {
	return btree.Item{Key: o.key(r, views), Slot: r.slot, Class: uint8(r.filter &^ bitShown)}
}

// classesOf returns the classes of the items that pass the filters.
func classesOf(s Status, p Proofs) (in btree.Classes) {
	for class := range bitShown {
		if (class | bitShown).match(s, p) {
			in |= 1 << class
		}
	}
	return in
}

const _ = uint(btree.NumClasses - bitShown) // more filters do not compile

// tie orders rows of equal keys: first by name, since names may differ after the bytes in the key,
// then by the bytes of the entry id (httpapi/CONTRACT.md#sorting).
func (o order) tie(a, b *Row) int {
	if o == byName {
		if c := strings.Compare(a.collation, b.collation); c != 0 {
			return c
		}
	}
	return strings.Compare(a.ID(), b.ID())
}
