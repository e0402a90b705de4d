package readmodel

// ascend calls f with the items from position skip on, in order, until f returns false.
func (t *tree) ascend(skip int, f func(slot uint32) bool) {
	if t.root != nil {
		t.root.ascend(skip, f)
	}
}

func (n *node) ascend(skip int, f func(slot uint32) bool) bool {
	if n.kids == nil {
		for _, it := range n.items[min(skip, len(n.items)):] {
			if !f(it.slot) {
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

// descend is ascend from the other end.
func (t *tree) descend(skip int, f func(slot uint32) bool) {
	if t.root != nil {
		t.root.descend(skip, f)
	}
}

func (n *node) descend(skip int, f func(slot uint32) bool) bool {
	if n.kids == nil {
		for i := len(n.items) - 1 - skip; i >= 0; i-- {
			if !f(n.items[i].slot) {
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

// withKey calls f with every item of that key. Only keys are compared, so this needs no order.
func (t *tree) withKey(key uint64, f func(slot uint32)) {
	if t.root != nil {
		t.root.withKey(key, f)
	}
}

func (n *node) withKey(key uint64, f func(slot uint32)) {
	at := n.lowerBound(key)
	if n.kids != nil && at > 0 {
		at-- // the kid before may end with the key
	}
	for ; at < len(n.items) && n.items[at].key <= key; at++ {
		if n.kids != nil {
			n.kids[at].withKey(key, f)
		} else if n.items[at].key == key {
			f(n.items[at].slot)
		}
	}
}

// lowerBound is where the first item whose key is not below key stands. Written out, since every
// look-up by id comes here: slices.BinarySearchFunc, which calls a function for each comparison,
// takes three times as long.
func (n *node) lowerBound(key uint64) int {
	low, high := 0, len(n.items)
	for low < high {
		if mid := int(uint(low+high) >> 1); n.items[mid].key < key {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
