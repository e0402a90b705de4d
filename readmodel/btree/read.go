package btree

import "math"

// Ascend calls f with the slots of the items of the classes, in order, until f returns false. It
// leaves out the first skip of them.
func (t *Tree) Ascend(in Classes, skip int, f func(slot uint32) bool) {
	if t.root != nil {
		t.root.ascend(in, skip, f)
	}
}

func (n *node) ascend(in Classes, skip int, f func(slot uint32) bool) bool {
	for i := range int(n.n) {
		if n.children == nil {
			if in.has(n.classes[i]) {
				if skip--; skip < 0 && !f(n.slots[i]) {
					return false
				}
			}
			continue
		}
		if count := n.kidCount(i, in); skip >= count {
			skip -= count
			continue
		}
		if !n.children.nodes[i].ascend(in, skip, f) {
			return false
		}
		skip = 0
	}
	return true
}

// Descend is Ascend from the other end: it leaves out the last skip items, and the order is
// reversed.
func (t *Tree) Descend(in Classes, skip int, f func(slot uint32) bool) {
	if t.root != nil {
		t.root.descend(in, skip, f)
	}
}

func (n *node) descend(in Classes, skip int, f func(slot uint32) bool) bool {
	for i := int(n.n) - 1; i >= 0; i-- {
		if n.children == nil {
			if in.has(n.classes[i]) {
				if skip--; skip < 0 && !f(n.slots[i]) {
					return false
				}
			}
			continue
		}
		if count := n.kidCount(i, in); skip >= count {
			skip -= count
			continue
		}
		if !n.children.nodes[i].descend(in, skip, f) {
			return false
		}
		skip = 0
	}
	return true
}

// kidCount returns how many items of the classes are below a kid. For All it does not read the kid
// itself, which is likely far away in memory.
func (n *node) kidCount(i int, in Classes) int {
	if in == All {
		return int(n.children.counts[i])
	}
	return n.children.nodes[i].count(in)
}

// AscendFrom calls f with the items whose key is key or greater, in order, until f returns false.
// Like Find it compares keys alone.
func (t *Tree) AscendFrom(key uint64, f func(Item) bool) {
	if t.root != nil {
		t.root.ascendFrom(key, f)
	}
}

func (n *node) ascendFrom(key uint64, f func(Item) bool) bool {
	at := n.lowerBound(key)
	if n.children == nil {
		for ; at < int(n.n); at++ {
			if !f(n.item(at)) {
				return false
			}
		}
		return true
	}
	for _, kid := range n.children.nodes[max(at-1, 0):n.n] { // the kid before may end with the key
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
	for n.children != nil {
		n = n.children.nodes[n.n-1]
	}
	return n.item(int(n.n) - 1), true
}

// Find calls f with the slots of all items with a key. It compares keys alone, so the tree's order
// must be by key first. It is fast if the keys are hashes.
func (t *Tree) Find(key uint64, f func(slot uint32)) {
	if t.root != nil {
		t.root.find(key, 0, math.MaxUint64, f)
	}
}

// find is Find below n, whose keys lie between low and high.
func (n *node) find(key, low, high uint64, f func(slot uint32)) {
	at := n.lowerBoundNear(key, low, high)
	if n.children == nil {
		for ; at < int(n.n) && n.keys[at] == key; at++ {
			f(n.slots[at])
		}
		return
	}
	for at = max(at-1, 0); at < int(n.n) && n.keys[at] <= key; at++ { // the kid before may end with the key
		end := high
		if at+1 < int(n.n) {
			end = n.keys[at+1]
		}
		n.children.nodes[at].find(key, n.keys[at], end, f)
	}
}

// Count returns how many items have a key. It reads few of them. Like Find it compares keys alone.
func (t *Tree) Count(key uint64) int {
	if t.root == nil {
		return 0
	}
	return t.root.countOf(key, 0, math.MaxUint64)
}

// countOf is Count below n, whose keys lie between low and high.
func (n *node) countOf(key, low, high uint64) (count int) {
	at := n.lowerBoundNear(key, low, high)
	if n.children == nil {
		for ; at < int(n.n) && n.keys[at] == key; at++ {
			count++
		}
		return count
	}
	for at = max(at-1, 0); at < int(n.n) && n.keys[at] <= key; at++ {
		end := high
		if at+1 < int(n.n) {
			end = n.keys[at+1]
		}
		if n.keys[at] == key && end == key {
			count += int(n.children.counts[at]) // it holds nothing else
		} else {
			count += n.children.nodes[at].countOf(key, n.keys[at], end)
		}
	}
	return count
}

// Repeated returns the keys that several items have. The tree's order must be by key first.
func (t *Tree) Repeated() map[uint64]bool {
	keys := map[uint64]bool{}
	var last uint64
	first := true
	t.AscendFrom(0, func(it Item) bool {
		if !first && last == it.Key {
			keys[last] = true
		}
		last, first = it.Key, false
		return true
	})
	return keys
}

// Range calls f with the slots of all items whose keys are low, high or between. Like Find it
// compares keys alone.
func (t *Tree) Range(low, high uint64, f func(slot uint32)) {
	t.AscendFrom(low, func(it Item) bool {
		if it.Key > high {
			return false
		}
		f(it.Slot)
		return true
	})
}

// lowerBound returns the position of the first item whose key is not below key. It is written out
// because slices.BinarySearchFunc, which calls a function for each comparison, takes three times as
// long.
func (n *node) lowerBound(key uint64) int {
	low, high := 0, int(n.n)
	for low < high {
		if mid := int(uint(low+high) >> 1); n.keys[mid] < key {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// lowerBoundNear is lowerBound for keys spread evenly between low and high. It starts at the
// expected position of key and scans from there. That touches one or two cache lines; a binary
// search touches five, and memory is most of the cost of a lookup by id.
func (n *node) lowerBoundNear(key, low, high uint64) int {
	keys := n.keys[:n.n]
	at := len(keys)
	if key < high {
		at = int(float64(key-low) / float64(high-low) * float64(at))
	}
	at = min(max(at, 0), len(keys))
	for at > 0 && keys[at-1] >= key {
		at--
	}
	for at < len(keys) && keys[at] < key {
		at++
	}
	return at
}
