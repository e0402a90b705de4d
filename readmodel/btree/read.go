package btree

import "math"

// Ascend calls f with the slots of the items from position skip on, in order, until f returns
// false.
func (t *Tree) Ascend(skip int, f func(slot uint32) bool) {
	if t.root != nil {
		t.root.ascend(skip, f)
	}
}

func (n *node) ascend(skip int, f func(slot uint32) bool) bool {
	if n.kids == nil {
		for _, it := range n.items[min(skip, len(n.items)):] {
			if !f(it.Slot) {
				return false
			}
		}
		return true
	}
	for i, kid := range n.kids {
		if skip >= n.counts[i] {
			skip -= n.counts[i]
			continue
		}
		if !kid.ascend(skip, f) {
			return false
		}
		skip = 0
	}
	return true
}

// Descend is Ascend from the other end: skip counts from the last item, and the order is reversed.
func (t *Tree) Descend(skip int, f func(slot uint32) bool) {
	if t.root != nil {
		t.root.descend(skip, f)
	}
}

func (n *node) descend(skip int, f func(slot uint32) bool) bool {
	if n.kids == nil {
		for i := len(n.items) - 1 - skip; i >= 0; i-- {
			if !f(n.items[i].Slot) {
				return false
			}
		}
		return true
	}
	for i := len(n.kids) - 1; i >= 0; i-- {
		if skip >= n.counts[i] {
			skip -= n.counts[i]
			continue
		}
		if !n.kids[i].descend(skip, f) {
			return false
		}
		skip = 0
	}
	return true
}

// AscendFrom calls f with the items from the first one of key, or after it, until f returns false.
// Like Find it compares keys alone.
func (t *Tree) AscendFrom(key uint64, f func(Item) bool) {
	if t.root != nil {
		t.root.ascendFrom(key, f)
	}
}

func (n *node) ascendFrom(key uint64, f func(Item) bool) bool {
	at := n.lowerBound(key)
	if n.kids == nil {
		for _, it := range n.items[at:] {
			if !f(it) {
				return false
			}
		}
		return true
	}
	for _, kid := range n.kids[max(at-1, 0):] { // the kid before may end with the key
		if !kid.ascendFrom(key, f) {
			return false
		}
	}
	return true
}

// Last returns the last item, if there is one.
func (t *Tree) Last() (last Item, ok bool) {
	if t.root == nil {
		return Item{}, false
	}
	n := t.root
	for n.kids != nil {
		n = n.kids[len(n.kids)-1]
	}
	return n.items[len(n.items)-1], true
}

// Find calls f with the slots of all items of a key. It compares keys alone, so the tree's order
// must be by key first. Keys are expected to be hashes; others take longer.
func (t *Tree) Find(key uint64, f func(slot uint32)) {
	if t.root != nil {
		t.root.find(key, 0, math.MaxUint64, f)
	}
}

// find is Find below n, whose keys lie between low and high.
func (n *node) find(key, low, high uint64, f func(slot uint32)) {
	at := n.lowerBoundNear(key, low, high)
	if n.kids == nil {
		for ; at < len(n.items) && n.items[at].Key == key; at++ {
			f(n.items[at].Slot)
		}
		return
	}
	for at = max(at-1, 0); at < len(n.items) && n.items[at].Key <= key; at++ { // the kid before may end with the key
		end := high
		if at+1 < len(n.items) {
			end = n.items[at+1].Key
		}
		n.kids[at].find(key, n.items[at].Key, end, f)
	}
}

// Repeated returns the keys that several items have. The tree's order must be by key first.
func (t *Tree) Repeated() map[uint64]bool {
	keys := map[uint64]bool{}
	var last *Item
	if t.root != nil {
		t.root.leaves(func(items []Item) {
			for i := range items {
				if last != nil && last.Key == items[i].Key {
					keys[last.Key] = true
				}
				last = &items[i]
			}
		})
	}
	return keys
}

// leaves calls f with the items of every leaf, in order.
func (n *node) leaves(f func(items []Item)) {
	if n.kids == nil {
		f(n.items)
	}
	for _, kid := range n.kids {
		kid.leaves(f)
	}
}

// CountKey returns the number of items of a key. Like Find it compares keys alone.
func (t *Tree) CountKey(key uint64) int {
	return t.countTo(key) - t.countBelow(key)
}

// Range calls f with the slots of all items whose keys are low, high or between. Like Find it
// compares keys alone.
func (t *Tree) Range(low, high uint64, f func(slot uint32)) {
	before := t.countBelow(low)
	left := t.countTo(high) - before
	t.Ascend(before, func(slot uint32) bool {
		if left--; left < 0 {
			return false
		}
		f(slot)
		return true
	})
}

// countTo returns the number of items with that key or a smaller one.
func (t *Tree) countTo(key uint64) int {
	if key == math.MaxUint64 {
		return t.count
	}
	return t.countBelow(key + 1)
}

// countBelow returns the number of items with a smaller key.
func (t *Tree) countBelow(key uint64) int {
	if t.root == nil {
		return 0
	}
	n, sum := t.root, 0
	for n.kids != nil {
		at := max(n.lowerBound(key)-1, 0) // the last kid that begins below key
		for _, c := range n.counts[:at] {
			sum += c
		}
		n = n.kids[at]
	}
	return sum + n.lowerBound(key)
}

// lowerBound returns the position of the first item whose key is not below key. It is written out
// because slices.BinarySearchFunc, which calls a function for each comparison, takes three times as
// long.
func (n *node) lowerBound(key uint64) int {
	low, high := 0, len(n.items)
	for low < high {
		if mid := int(uint(low+high) >> 1); n.items[mid].Key < key {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// lowerBoundNear is lowerBound for keys spread evenly between low and high. It starts where key
// should be and goes on from there, which touches one or two cache lines where halving touches
// five. A look-up by id costs what the memory it touches costs.
func (n *node) lowerBoundNear(key, low, high uint64) int {
	at := len(n.items)
	if key < high {
		at = int(float64(key-low) / float64(high-low) * float64(at))
	}
	at = min(max(at, 0), len(n.items))
	for at > 0 && n.items[at-1].Key >= key {
		at--
	}
	for at < len(n.items) && n.items[at].Key < key {
		at++
	}
	return at
}
