package readmodel

import (
	"context"
	"iter"
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

// ByViews reports whether the result of q depends on view totals; if so, ListTag depends on them, too. If another
// field makes a result depend on view totals, add the field to this condition (TestListTag).
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

	// Find the rows, whether or not they pass the filters. Without an id and a search, found stays nil: all rows.
	l := v.list(q.List)
	var found *bitset.BitSet // of slots
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
		counts = l.countRows(found)
	}

	p.Totals = counts.sumByStatus(q.Proofs)
	p.Total = p.Totals[q.Status]
	p.Rows = l.page(found, p.Total, &q)
	p.HasMore = q.Skip+len(p.Rows) < p.Total
	return p, nil
}

// filterCounts has the number of rows for each value of filterBits.
type filterCounts [bitShown << 1]int32

// sumByStatus returns, for each status, how many rows pass that status and a filter by proofs.
func (c *filterCounts) sumByStatus(p Proofs) (t Totals) {
	for f, n := range c {
		for status := range t {
			if filterBits(f).matchesFilters(Status(status), p) {
				t[status] += int(n)
			}
		}
	}
	return t
}

// countRows counts the rows in found, by their filterBits.
func (l *list) countRows(found *bitset.BitSet) *filterCounts {
	var c filterCounts
	for slot := range found.EachSet() {
		c[l.filters.get(uint32(slot))]++
	}
	return &c
}

// page returns the page of q among the rows in found, or among all rows if found is nil. Of these rows, total pass
// q's filters. If found is nil or
// many rows pass, page walks the order until the page is full; else it sorts the few that pass.
func (l *list) page(found *bitset.BitSet, total int, q *ListQuery) []*Row {
	size := min(q.Limit, total-q.Skip)
	if size <= 0 {
		return nil
	}

	// If every row passes, the page begins at position q.Skip.
	numRows := l.orders[byTime].Len()
	if total == numRows {
		return takeRows(l.itemsFrom(q.Sort, q.Skip), 0, size)
	}

	// If the rows that pass are spread evenly over the order, a walk reads this many rows.
	numRead := (q.Skip + size) * numRows / total
	if found == nil || numRead < sortCost*total {
		return takeRows(l.walkPassing(found, q), q.Skip, size)
	}
	return takeRows(slices.Values(l.sortPassing(found, q)), q.Skip, size)
}

// sortCost is how many rows a walk reads in the time that it takes to sort one row.
const sortCost = 40

// takeRows returns the rows of the next size items after the first skip items. size is positive.
func takeRows(items iter.Seq[item], skip, size int) []*Row {
	rows := make([]*Row, 0, size)
	for it := range items {
		if skip > 0 {
			skip--
			continue
		}

		rows = append(rows, it.row)
		if len(rows) == size {
			break
		}
	}
	return rows
}

// itemsFrom yields the items in the order of s, from position start on. There must be an item at start.
func (l *list) itemsFrom(s Sort, start int) iter.Seq[item] {
	o, descending := s.treeOrder()
	order := l.orders[o]
	if descending {
		first, _ := order.GetAt(order.Len() - 1 - start)
		return func(yield func(item) bool) { order.Descend(first, yield) }
	}

	first, _ := order.GetAt(start)
	return func(yield func(item) bool) { order.Ascend(first, yield) }
}

// walkPassing yields the items in found, or all items if found is nil, that pass q's filters, in q's order.
func (l *list) walkPassing(found *bitset.BitSet, q *ListQuery) iter.Seq[item] {
	return func(yield func(item) bool) {
		for it := range l.itemsFrom(q.Sort, 0) {
			isFound := found == nil || found.Test(uint(it.slot))
			if isFound && it.filter.matchesFilters(q.Status, q.Proofs) && !yield(it) {
				return
			}
		}
	}
}

// sortPassing returns the items in found that pass q's filters, in q's order.
func (l *list) sortPassing(found *bitset.BitSet, q *ListQuery) (items []item) {
	o, descending := q.Sort.treeOrder()
	for slot := range found.EachSet() {
		r := l.rows.get(uint32(slot))
		if r.Passes(q.Status, q.Proofs) {
			items = append(items, itemOf(o.sortKey(r, l.views.get(r.slot)), r))
		}
	}

	// No two items are equal, since their entry ids differ.
	slices.SortFunc(items, func(a, b item) int {
		if l.orders[o].Less(a, b) {
			return -1
		}
		return 1
	})
	if descending {
		slices.Reverse(items)
	}
	return items
}

// treeOrder returns the order that a sort reads, and whether it reads from the end.
func (s Sort) treeOrder() (o order, descending bool) {
	orders := [...]order{Newest: byTime, Oldest: byTime, Popular: byViews, PopularAsc: byViews, AZ: byName, ZA: byName}
	return orders[s], s == Newest || s == Popular || s == ZA
}
