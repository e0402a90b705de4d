package btree

import "slices"

// Sort sorts items by key, and those of one key by order, which decides by key first as every
// Compare here does. It moves items by the bytes of their keys, so that order, which may read rows,
// is asked about equal keys alone. For hashes that is nearly five times as fast as slices.SortFunc.
func Sort(items []Item, order Compare) {
	sortByKey(items)
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].Key == items[0].Key {
			n++
		}
		slices.SortFunc(items[:n], order)
		items = items[n:]
	}
}

// sortByKey is a radix sort. A byte that all keys share costs no move.
func sortByKey(items []Item) {
	from, to := items, make([]Item, len(items))
	for shift := 0; shift < 64; shift += 8 {
		var ends [257]int // ends[b+1] counts the keys with byte b, then is where the next of them goes, less one byte
		for _, it := range from {
			ends[int(byte(it.Key>>shift))+1]++
		}
		if len(from) == 0 || ends[int(byte(from[0].Key>>shift))+1] == len(from) {
			continue
		}
		for b := range 256 {
			ends[b+1] += ends[b]
		}
		for _, it := range from {
			b := byte(it.Key >> shift)
			to[ends[b]] = it
			ends[b]++
		}
		from, to = to, from
	}
	if len(items) > 0 && &from[0] != &items[0] {
		copy(items, from)
	}
}
