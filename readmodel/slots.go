package readmodel

import "math/bits"

// BlockLen is the number of slots that a TextIndex reports at once.
const BlockLen = 1 << 14

// Slots is a set of slots of one block, counted from the first slot of the block: numbers below
// BlockLen, a bit for each. The zero value is empty.
type Slots [BlockLen / 64]uint64

// Add adds a slot and reports whether it was missing.
func (s *Slots) Add(slot uint16) bool {
	word, bit := &s[slot/64], uint64(1)<<(slot%64)
	is := *word&bit == 0
	*word |= bit
	return is
}

// Has reports whether a slot is in the set.
func (s *Slots) Has(slot uint16) bool { return s[slot/64]>>(slot%64)&1 != 0 }

// Len returns the number of slots.
func (s *Slots) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Clear removes every slot.
func (s *Slots) Clear() { *s = Slots{} }

// Fill adds every slot.
func (s *Slots) Fill() {
	for i := range s {
		s[i] = ^uint64(0)
	}
}

// Or adds the slots of another set.
func (s *Slots) Or(o *Slots) {
	for i, word := range o {
		s[i] |= word
	}
}

// AndNot removes the slots of another set.
func (s *Slots) AndNot(o *Slots) {
	for i, word := range o {
		s[i] &^= word
	}
}

// And removes the slots that are not in o.
func (s *Slots) And(o *Slots) {
	for i, word := range o {
		s[i] &= word
	}
}

// Each calls f with the slots in ascending order until it returns false.
func (s *Slots) Each(f func(slot uint16) bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			if !f(uint16(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}
