package readmodel

import "slices"

// item is a row in one order: the number that decides nearly every comparison without a look at
// the row (time of the report, view total, start of the collation key, hash), and the row's slot.
// It holds no pointer, so the collector never looks into a tree.
type item struct {
	key  uint64
	slot uint32
}

// maxItems is how many items a node has at most: 62 of 16 bytes fill a size class of the allocator
// with their header; minItems is when a node looks for a neighbour to join.
const (
	maxItems = 64
	minItems = maxItems / 4
	// loadItems leaves room for the first inserts after a load, which would else split every node.
	loadItems = maxItems - maxItems/8
)

// node is a leaf, or a branch whose items are lower bounds of its kids and whose counts are the
// numbers of items below them.
type node struct {
	generation uint64
	items      []item
	kids       []*node
	counts     []int
}

// kidOf is the kid below which it belongs: the last one whose bound is not above it.
func (n *node) kidOf(it item, cmp func(a, b item) int) int {
	at, found := slices.BinarySearchFunc(n.items, it, cmp)
	if found {
		return at
	}
	return max(at-1, 0)
}

// refresh sets what n knows of its kid at: the bound is the kid's first item, so that no bound
// names a row that is gone.
func (n *node) refresh(at int) {
	n.items[at], n.counts[at] = n.kids[at].items[0], n.kids[at].size()
}

func (n *node) insertKid(at int, kid *node) {
	n.items = slices.Insert(n.items, at, kid.items[0])
	n.kids = slices.Insert(n.kids, at, kid)
	n.counts = slices.Insert(n.counts, at, kid.size())
}

func (n *node) removeKid(at int) {
	n.items = slices.Delete(n.items, at, at+1)
	n.kids = slices.Delete(n.kids, at, at+1)
	n.counts = slices.Delete(n.counts, at, at+1)
}

func (n *node) size() int {
	if n.kids == nil {
		return len(n.items)
	}
	sum := 0
	for _, c := range n.counts {
		sum += c
	}
	return sum
}
