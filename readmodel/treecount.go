package readmodel

import "math"

// countKey is how many items of that key there are. Like withKey it compares keys alone.
func (t *tree) countKey(key uint64) int {
	if key == math.MaxUint64 {
		return t.count - t.below(key)
	}
	return t.below(key+1) - t.below(key)
}

// below is how many items have a smaller key.
func (t *tree) below(key uint64) int {
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
