package btree

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// fewItems are sorted by insertion, in less time than another pass over their keys takes.
const fewItems = 24

// Sorter sorts items, and reuses its memory for the next sort. The zero value is ready. One
// goroutine at a time may use it.
type Sorter struct{ spare []Item }

// Sort sorts items by order, which decides by key first, as every Compare here does. It distributes
// items by the bits of their keys. If text is not nil, it distributes items of one key by the bytes
// of the text of their slots, the next criterion of order. So it calls order, which may read two
// rows, for few items. For hashes that is eight times as fast as slices.SortFunc.
func (s *Sorter) Sort(items []Item, text func(slot uint32) string, order Compare) {
	if len(s.spare) < len(items) {
		s.spare = make([]Item, len(items))
	}
	sortByKey(items, s.spare, by{order, text, 0})
}

// by holds the criteria by which items are sorted after their keys.
type by struct {
	order Compare
	text  func(slot uint32) string
	read  int // bytes of the texts that the keys hold or have held
}

// sortByKey sorts items by the first eight bits in which their keys differ, then each group of
// equal bits in the same way. It overwrites spare, which must not be shorter than items.
func sortByKey(items, spare []Item, next by) {
	differ := uint64(0)
	for _, it := range items {
		differ |= it.Key ^ items[0].Key
	}
	if differ == 0 {
		sortEqual(items, spare, next)
		return
	}
	if len(items) <= fewItems {
		insertionSort(items)
		for len(items) > 0 {
			n := 1
			for n < len(items) && items[n].Key == items[0].Key {
				n++
			}
			sortEqual(items[:n], spare, next)
			items = items[n:]
		}
		return
	}
	var ends [257]int // ends[b+1] counts the keys with byte b, then becomes the index of the next such key
	shift := max(bits.Len64(differ)-8, 0)
	for _, it := range items {
		ends[int(byte(it.Key>>shift))+1]++
	}
	for b := range 256 {
		ends[b+1] += ends[b]
	}
	for _, it := range items {
		b := byte(it.Key >> shift)
		spare[ends[b]] = it
		ends[b]++
	}
	copy(items, spare)
	from := 0
	for _, to := range ends[:256] {
		sortByKey(items[from:to], spare[from:to], next)
		from = to
	}
}

// sortEqual sorts items of one key.
func sortEqual(items, spare []Item, next by) {
	if len(items) < 2 {
		return
	}
	key, more := items[0].Key, false
	if next.text != nil {
		for i := range items {
			text := next.text(items[i].Slot)
			more = more || len(text) > next.read
			items[i].Key = Prefix(text[min(next.read, len(text)):])
		}
	}
	next.read += 8
	if more {
		sortByKey(items, spare, next)
	}
	for i := range items {
		items[i].Key = key
	}
	if !more {
		slices.SortFunc(items, next.order)
	}
}

// Prefix returns the first eight bytes of s as a number that sorts as s does.
func Prefix(s string) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64([]byte(s[:8]))
	}
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}

// insertionSort sorts items by key.
func insertionSort(items []Item) {
	for i, it := range items {
		at := i
		for ; at > 0 && it.Key < items[at-1].Key; at-- {
			items[at] = items[at-1]
		}
		items[at] = it
	}
}
