package readmodel

import "math"

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

// withKey calls f with every item of that key. Only keys are compared, so this needs no order. Keys
// are expected to be hashes; of any others the answer is as right, and takes longer.
func (t *tree) withKey(key uint64, f func(slot uint32)) {
	if t.root != nil {
		t.root.withKey(key, 0, math.MaxUint64, f)
	}
}

// withKey knows that the keys below n lie from low to high.
func (n *node) withKey(key, low, high uint64, f func(slot uint32)) {
	at := n.lowerBoundNear(key, low, high)
	if n.kids == nil {
		for ; at < len(n.items) && n.items[at].key == key; at++ {
			f(n.items[at].slot)
		}
		return
	}
	for at = max(at-1, 0); at < len(n.items) && n.items[at].key <= key; at++ { // the kid before may end with the key
		end := high
		if at+1 < len(n.items) {
			end = n.items[at+1].key
		}
		n.kids[at].withKey(key, n.items[at].key, end, f)
	}
}

// lowerBoundNear is lowerBound for keys that are spread evenly: it starts where key should be and
// goes on from there, which touches one or two lines of memory where halving touches five. A
// look-up by id costs what the memory it touches costs.
func (n *node) lowerBoundNear(key, low, high uint64) int {
	at := len(n.items)
	if key < high {
		at = int(float64(key-low) / float64(high-low) * float64(at))
	}
	at = min(max(at, 0), len(n.items))
	for at > 0 && n.items[at-1].key >= key {
		at--
	}
	for at < len(n.items) && n.items[at].key < key {
		at++
	}
	return at
}

// lowerBound is where the first item whose key is not below key stands. Written out: slices.BinarySearchFunc,
// which calls a function for each comparison, takes three times as long.
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
