package readmodel

import (
	"cmp"
	"slices"
)

const (
	byTime order = iota
	byViews
	byName
	numOrders
)

// orders are the trees of one list, for every order and filter, on the owner's side, and the rows
// that their items name by slot.
type orders struct {
	rows    paged[*Row]
	filters paged[filterBits] // of the rows; zero where there is none
	trees   [numTrees]tree
	dirty   [numTrees]bool
	compare [numOrders]func(a, b item) int
}

func newOrders() *orders {
	os := &orders{}
	for o := byTime; o < numOrders; o++ {
		os.compare[o] = func(a, b item) int {
			if a.key != b.key {
				return cmp.Compare(a.key, b.key)
			}
			if a.slot == b.slot {
				return 0
			}
			return o.tie(os.rows.get(a.slot), os.rows.get(b.slot))
		}
	}
	return os
}

// change is what becomes of one slot: either row may be nil.
type change struct {
	old, row      *Row
	before, after int64 // view totals
}

// slot is where it happens. The change is not empty.
func (c *change) slot() uint32 {
	if c.row != nil {
		return c.row.slot
	}
	return c.old.slot
}

// same says whether the change leaves the row where it is in o.
func (c *change) same(o order) bool {
	return o.key(c.old, c.before) == o.key(c.row, c.after) &&
		(o != byName || c.old.collation() == c.row.collation())
}

// apply moves the slot in every tree that the change concerns. Items name rows by slot, so the old
// row stays in its place until no tree has it, and the new one is there before any tree gets it.
func (os *orders) apply(c change) {
	var same [numOrders]bool
	if c.old != nil && c.row != nil {
		for o := range same {
			same[o] = c.same(order(o))
		}
	}
	var enters [numTrees]bool
	for i := range os.trees {
		o, s, p := treeOf(i)
		was, is := c.old != nil && c.old.matches(s, p), c.row != nil && c.row.matches(s, p)
		if was && is && same[o] {
			continue
		}
		if was {
			os.trees[i].remove(item{o.key(c.old, c.before), c.old.slot}, os.compare[o])
		}
		enters[i] = is
		os.dirty[i] = os.dirty[i] || was || is
	}
	os.place(c)
	for i, in := range enters {
		if o, _, _ := treeOf(i); in {
			os.trees[i].insert(item{o.key(c.row, c.after), c.row.slot}, os.compare[o])
		}
	}
}

// place puts the row into its slot and nothing else.
func (os *orders) place(c change) {
	switch {
	case c.row == c.old:
	case c.row != nil:
		os.rows.set(c.row.slot, c.row)
		os.filters.set(c.row.slot, c.row.filter)
	default:
		os.rows.set(c.old.slot, nil)
		os.filters.set(c.old.slot, 0)
	}
}

// load replaces the trees of one order by those of items, which it sorts once.
func (os *orders) load(o order, items []item) {
	slices.SortFunc(items, os.compare[o])
	some := make([]item, 0, len(items))
	for i := treeIndex(o, 0, 0); i < treeIndex(o+1, 0, 0); i++ {
		_, s, p := treeOf(i)
		some = some[:0]
		for _, it := range items {
			if os.filters.get(it.slot).match(s, p) {
				some = append(some, it)
			}
		}
		os.trees[i].load(some)
		os.dirty[i] = true
	}
}

// publish gives the trees that changed to a view, and goes on in copies of their nodes.
func (os *orders) publish(into *[numTrees]tree) {
	for i := range os.trees {
		if os.dirty[i] {
			into[i], os.dirty[i] = os.trees[i].share(), false
		}
	}
}
