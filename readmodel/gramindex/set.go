package gramindex

import (
	"encoding/binary"
	"math/bits"
)

// Set is a set of the slots of one block: numbers below BlockLen.
type Set [BlockLen / 64]uint64

// Add puts a slot in and says whether that is new.
func (s *Set) Add(slot uint16) bool {
	word, bit := &s[slot/64], uint64(1)<<(slot%64)
	is := *word&bit == 0
	*word |= bit
	return is
}

// Has says whether a slot is in.
func (s *Set) Has(slot uint16) bool { return s[slot/64]>>(slot%64)&1 != 0 }

// Len is how many slots are in.
func (s *Set) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Fill puts every slot in.
func (s *Set) Fill() {
	for i := range s {
		s[i] = ^uint64(0)
	}
}

// Or adds the slots of another set.
func (s *Set) Or(o *Set) {
	for i := range s {
		s[i] |= o[i]
	}
}

// AndNot removes the slots of another set.
func (s *Set) AndNot(o *Set) {
	for i := range s {
		s[i] &^= o[i]
	}
}

// and keeps what is in o too, and says how much that is.
func (s *Set) and(o *Set) (n int) {
	for i := range s {
		s[i] &= o[i]
		n += bits.OnesCount64(s[i])
	}
	return n
}

// Each calls f with the slots in ascending order until it returns false.
func (s *Set) Each(f func(slot uint16) bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			if !f(uint16(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// A list of slots is written as two bytes each, ascending, or as the set's words where that is
// no longer. Little endian.
const (
	slotSize = 2
	setSize  = BlockLen / 8
)

// addList adds a written list.
func (s *Set) addList(list []byte) {
	if len(list) == setSize {
		for i := range s {
			s[i] |= binary.LittleEndian.Uint64(list[8*i:])
		}
		return
	}
	for ; len(list) >= slotSize; list = list[slotSize:] {
		slot := binary.LittleEndian.Uint16(list)
		s[slot/64] |= 1 << (slot % 64)
	}
}
