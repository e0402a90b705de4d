package readmodel

import "context"

// What the benchmarks of search need, which use the index of package exact.

// Find answers q without the cache, and returns how many rows match.
func Find(v *View, q TextQuery) (uint64, error) {
	m, err := v.find(context.Background(), q)
	if err != nil {
		return 0, err
	}
	return m.slots.GetCardinality(), nil
}

// Scan answers q by a look at every row.
func Scan(v *View, q TextQuery) {
	_ = v.scan(context.Background(), q, make(bitset, len(v.lists[q.List].rows.chunks)*chunkLen/64))
}

// ForgetSearches empties the cache.
func ForgetSearches(m *Model) { m.text.cache.InvalidateAll() }

// Fold folds a text as searches do.
func Fold(s string) string { return fold(s) }
