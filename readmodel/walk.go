package readmodel

import "slices"

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
	at, _ := slices.BinarySearchFunc(n.items, key, func(it item, key uint64) int {
		if it.key < key {
			return -1
		}
		return 1
	})
	if n.kids != nil {
		at = max(at-1, 0) // the kid before may end with the key
	}
	for ; at < len(n.items) && n.items[at].key <= key; at++ {
		if n.kids != nil {
			n.kids[at].withKey(key, f)
		} else if n.items[at].key == key {
			f(n.items[at].slot)
		}
	}
}
