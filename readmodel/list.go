package readmodel

import (
	"context"
	"slices"

	"example.org/registry/events"
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
	counts := &l.counts
	switch {
	case q.ID != "":
		rows := v.rowsWithID(q)
		counts = countFilters(rows)
		p = l.sortedPage(rows, q)
	case q.Search != "":
		found, err := v.matching(ctx, textQuery{listIndex(q.List), allText, fold(q.Search)})
		if err != nil {
			return p, err
		}
		defer v.memory.bits.Put(found)
		counts = l.countMatches(*found)
		p = l.pageOf(*found, counts.count(q), q)
	default:
		p = l.page(nil, counts.count(q), q)
	}

	p.HasMore = q.Skip+len(p.Rows) < p.Total
	if t != nil {
		under := *q
		for status, n := range []*int{StatusAll: &t.All, StatusVerified: &t.Verified, StatusRisk: &t.Risk} {
			under.Status = Status(status)
			*n = counts.count(&under)
		}
	}
	return p, nil
}

// rowsWithID returns the rows of q's list with exactly its chat id. There is seldom more than one.
func (v *View) rowsWithID(q *ListQuery) (rows []*Row) {
	v.withChatID(q.ID, func(r *Row) {
		if r.List() == q.List {
			rows = append(rows, r)
		}
	})
	return rows
}

// filterCounts counts rows by filterBits: a total under any filter is a sum of some.
type filterCounts [bitShown << 1]int32

// count returns how many of the rows pass q's filters.
func (c *filterCounts) count(q *ListQuery) (total int) {
	for f, n := range c {
		if filterBits(f).match(q.Status, q.Proofs) {
			total += int(n)
		}
	}
	return total
}

func countFilters(rows []*Row) *filterCounts {
	var c filterCounts
	for _, r := range rows {
		c[r.filter]++
	}
	return &c
}

// countMatches counts the rows in bits.
func (l *list) countMatches(bits bitset) *filterCounts {
	var c filterCounts
	bits.each(func(slot uint32) { c[l.filters.get(slot)]++ })
	return &c
}

// pageOf returns the page of q among the rows in bits, of which total pass q's filters. If these are
// many, it walks the order until the page is full; if they are few, it sorts them.
func (l *list) pageOf(bits bitset, total int, q *ListQuery) Page {
	n := min(q.Limit, total-q.Skip)
	if n <= 0 {
		return Page{Total: total}
	}

	// Sorting a row costs about forty times as much as walking past one.
	steps := (q.Skip + n) * l.orders[byTime].Len() / total
	if steps < 40*total {
		return l.page(bits, total, q)
	}
	rows := make([]*Row, 0, total)
	bits.each(func(slot uint32) { rows = append(rows, l.rows.get(slot)) })
	return l.sortedPage(rows, q)
}

// page walks q's order to its page, among the rows in bits, or all if that is nil. total of them pass
// q's filters.
func (l *list) page(bits bitset, total int, q *ListQuery) Page {
	n, skip := min(q.Limit, total-q.Skip), q.Skip
	if n <= 0 {
		return Page{Total: total}
	}
	p := Page{Rows: make([]*Row, 0, n), Total: total}
	o, descending := q.Sort.order()
	start := 0
	if total == l.orders[o].Len() { // none is passed over
		start, skip = skip, 0
	}
	eachFrom(l.orders[o], start, descending, func(it item) bool {
		if !it.class.match(q.Status, q.Proofs) || bits != nil && !bits.has(it.slot) {
			return true
		}
		if skip > 0 {
			skip--
			return true
		}
		p.Rows = append(p.Rows, it.row)
		return len(p.Rows) < n
	})
	return p
}

// sortedPage returns the page of q among rows, which it sorts.
func (l *list) sortedPage(rows []*Row, q *ListQuery) Page {
	rows = slices.DeleteFunc(rows, func(r *Row) bool { return !r.filter.match(q.Status, q.Proofs) })
	o, descending := q.Sort.order()
	items := make([]item, len(rows))
	for i, r := range rows {
		items[i] = itemOf(o.key(r, l.views.get(r.slot)), r)
	}
	isLess := isLessByID
	if o == byName {
		isLess = isLessByName
	}
	slices.SortFunc(items, func(a, b item) int {
		if descending {
			a, b = b, a
		}
		if isLess(a, b) {
			return -1
		}
		return 1
	})

	p := Page{Total: len(rows)}
	for _, it := range items[min(q.Skip, len(items)):min(q.Skip+q.Limit, len(items))] {
		p.Rows = append(p.Rows, it.row)
	}
	return p
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
		return firstBytes(r.collation)
	default:
		return uint64(r.reported) ^ 1<<63 // sorts times before 1970 first
	}
}
