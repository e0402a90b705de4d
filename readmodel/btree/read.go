package btree

// Ascend calls f with the slots of the items of the classes, in order, until f returns false. It
// leaves out the first skip of them.
func (t *Tree) Ascend(in Classes, skip int, f func(slot uint32) bool) {
	if t.root != nil {
		t.root.walk(in, skip, false, f)
	}
}

// Descend is Ascend from the other end: it leaves out the last skip items, and the order is
// reversed.
func (t *Tree) Descend(in Classes, skip int, f func(slot uint32) bool) {
	if t.root != nil {
		t.root.walk(in, skip, true, f)
	}
}

func (n *node) walk(in Classes, skip int, descending bool, f func(slot uint32) bool) bool {
	for i := range int(n.n) {
		if descending {
			i = int(n.n) - 1 - i
		}
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
		if !n.children.nodes[i].walk(in, skip, descending, f) {
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
// must be by key first.
func (t *Tree) Find(key uint64, f func(slot uint32)) {
	t.AscendFrom(key, func(it Item) bool {
		if it.Key == key {
			f(it.Slot)
		}
		return it.Key == key
	})
}

// Count returns how many items have a key. It reads few of them. Like Find it compares keys alone.
func (t *Tree) Count(key uint64) int {
	if t.root == nil {
		return 0
	}
	return t.root.countOf(key)
}

func (n *node) countOf(key uint64) (count int) {
	at := n.lowerBound(key)
	if n.children == nil {
		for ; at < int(n.n) && n.keys[at] == key; at++ {
			count++
		}
		return count
	}
	for at = max(at-1, 0); at < int(n.n) && n.keys[at] <= key; at++ { // the kid before may end with the key
		if n.keys[at] == key && at+1 < int(n.n) && n.keys[at+1] == key {
			count += int(n.children.counts[at]) // it holds nothing else
		} else {
			count += n.children.nodes[at].countOf(key)
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
