package readmodel

import (
	"context"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"example.org/registry/events"
)

// Sort is the order of a list. The zero value is Newest.
type Sort uint8

// The orders. Oldest, PopularAsc and AZ ascend, and the others are their reverses.
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
// and Limit is at least 1. Search counts only if ID is empty.
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

// ByViews reports whether the result depends on view totals. If it does, so does ListTag. A new field
// that makes a result depend on view totals must be tested here (TestListTag).
func (q *ListQuery) ByViews() bool { return q.Sort == Popular || q.Sort == PopularAsc }

// Page is a part of a list, with the numbers of matching entries. Its rows belong to one view.
type Page struct {
	Rows    []*Row
	Total   int    // matching entries on all pages
	HasMore bool   // whether a page follows
	Totals  Totals // matching entries under each status
}

// Totals has the number of matching entries for each Status, whatever the status of the query. Legit has
// none for StatusRisk.
type Totals [StatusRisk + 1]int

// List returns one page of a list. Its only error is ctx's, since a search stops when ctx ends.
func (v *View) List(ctx context.Context, q ListQuery) (p Page, err error) {
	if q.List.Trusted() {
		q.Status = StatusVerified // legit shows no others
	}

	// Find the rows, whether or not they pass the filters.
	l := v.list(q.List)
	var found *bitset.BitSet // of slots; nil stands for all rows
	if q.ID != "" {
		found = bitset.New(uint(l.numSlots))
		for r := range v.chats.find(q.ID) {
			if r.List() == q.List {
				found.Set(uint(r.slot))
			}
		}
	} else if q.Search != "" {
		found = bitset.New(uint(l.numSlots))
		queries := []textQuery{{part: allText, needle: fold(q.Search)}}
		if err := l.eachMatch(ctx, queries, func(slot uint32) { found.Set(uint(slot)) }); err != nil {
			return p, err
		}
	}

	// Count the rows that pass the filters, and take their page.
	counts := &l.counts
	if found != nil {
		counts = l.countMatches(found)
	}
	p.Totals = counts.countTotals(q.Proofs)
	p.Total = p.Totals[q.Status]
	p.Rows = l.page(found, p.Total, &q)
	p.HasMore = q.Skip+len(p.Rows) < p.Total
	return p, nil
}

// filterCounts has the number of rows for each value of filterBits.
type filterCounts [bitShown << 1]int32

// countTotals sums up the counts that pass a filter by proofs, for each status and for StatusAll.
func (c *filterCounts) countTotals(p Proofs) (t Totals) {
	for f, n := range c {
		for status := range t {
			if filterBits(f).matchesFilters(Status(status), p) {
				t[status] += int(n)
			}
		}
	}
	return t
}

// countMatches counts the rows in found.
func (l *list) countMatches(found *bitset.BitSet) *filterCounts {
	var c filterCounts
	for slot := range found.EachSet() {
		c[l.filters.get(uint32(slot))]++
	}
	return &c
}

// page returns the page of q among the rows in found, or among all rows if found is nil. total is the
// number of these rows that pass q's filters. If many rows pass, page walks the order until the page
// is full; if few rows pass, page sorts these rows.
func (l *list) page(found *bitset.BitSet, total int, q *ListQuery) []*Row {
	size := min(q.Limit, total-q.Skip)
	if size <= 0 {
		return nil
	}

	// A walk takes so many steps if the rows that pass are spread evenly over the order.
	steps := (q.Skip + size) * l.orders[byTime].Len() / total
	if found == nil || steps < sortCost*total {
		return l.orderedPage(found, total, size, q)
	}
	return l.sortedPage(found, size, q)
}

// sortCost is how many rows of an order can be passed in the time that it takes to sort one.
const sortCost = 40

// orderedPage walks q's order to its page, which is not empty.
func (l *list) orderedPage(found *bitset.BitSet, total, size int, q *ListQuery) []*Row {
	o, descending := q.Sort.treeOrder()
	order := l.orders[o]
	start := 0
	skip := q.Skip
	if total == order.Len() { // every row passes, so the page starts at position q.Skip
		start = q.Skip
		skip = 0
	}

	walk := order.Ascend
	if descending {
		walk = order.Descend
		start = order.Len() - 1 - start
	}

	rows := make([]*Row, 0, size)
	first, _ := order.GetAt(start)
	walk(first, func(it item) bool {
		isFound := found == nil || found.Test(uint(it.slot))
		if !isFound || !it.filter.matchesFilters(q.Status, q.Proofs) {
			return true
		}
		if skip > 0 {
			skip--
			return true
		}

		rows = append(rows, it.row)
		return len(rows) < size
	})
	return rows
}

// sortedPage sorts the rows that pass q's filters, and returns the page of q, which is not empty.
func (l *list) sortedPage(found *bitset.BitSet, size int, q *ListQuery) []*Row {
	o, descending := q.Sort.treeOrder()
	var items []item
	for slot := range found.EachSet() {
		r := l.rows.get(uint32(slot))
		if r.Passes(q.Status, q.Proofs) {
			items = append(items, itemOf(o.sortKey(r, l.views.get(r.slot)), r))
		}
	}

	// No two items are equal, since their entry ids differ.
	slices.SortFunc(items, func(a, b item) int {
		if l.orders[o].Less(a, b) != descending {
			return -1
		}
		return 1
	})

	rows := make([]*Row, 0, size)
	for _, it := range items[q.Skip:][:size] {
		rows = append(rows, it.row)
	}
	return rows
}

// treeOrder returns the order that a sort reads, and whether it reads from the end.
func (s Sort) treeOrder() (o order, descending bool) {
	orders := [...]order{Newest: byTime, Oldest: byTime, Popular: byViews, PopularAsc: byViews, AZ: byName, ZA: byName}
	return orders[s], s == Newest || s == Popular || s == ZA
}
