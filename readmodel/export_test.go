package readmodel

import "context"

// What the benchmarks of search need, which use the index of package exact.

// Find answers q, and returns how many rows match.
func Find(v *View, q TextQuery) (n int, err error) {
	m, err := v.matching(context.Background(), q)
	if err != nil {
		return 0, err
	}
	m.bits.each(func(uint32) { n++ })
	v.text.bits.Put(m.bits)
	return n, nil
}

// Scan answers q by a look at every row.
func Scan(v *View, q TextQuery) {
	_ = v.scan(context.Background(), q, make(bitset, len(v.lists[q.List].rows.chunks)*chunkLen/64))
}

// Fold folds a text as searches do.
func Fold(s string) string { return fold(s) }
