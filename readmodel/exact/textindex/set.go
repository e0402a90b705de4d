package textindex

import (
	"encoding/binary"
	"math/bits"
)

// Set is a set of slots of one block: numbers below BlockLen. The zero value is empty.
type Set struct{ words [BlockLen / 64]uint64 }

// Add adds a slot and reports whether it was missing.
func (s *Set) Add(slot uint16) bool {
	word, bit := &s.words[slot/64], uint64(1)<<(slot%64)
	is := *word&bit == 0
	*word |= bit
	return is
}

// Has reports whether a slot is in the set.
func (s *Set) Has(slot uint16) bool { return s.words[slot/64]>>(slot%64)&1 != 0 }

// Len returns the number of slots.
func (s *Set) Len() (n int) {
	for _, word := range s.words {
		n += bits.OnesCount64(word)
	}
	return n
}

// Clear removes every slot.
func (s *Set) Clear() { *s = Set{} }

// Fill adds every slot.
func (s *Set) Fill() {
	for i := range s.words {
		s.words[i] = ^uint64(0)
	}
}

// Or adds the slots of another set.
func (s *Set) Or(o *Set) {
	for i, word := range o.words {
		s.words[i] |= word
	}
}

// AndNot removes the slots of another set.
func (s *Set) AndNot(o *Set) {
	for i, word := range o.words {
		s.words[i] &^= word
	}
}

// and removes the slots that are not in o.
func (s *Set) and(o *Set) {
	for i, word := range o.words {
		s.words[i] &= word
	}
}

// Each calls f with the slots in ascending order until it returns false.
func (s *Set) Each(f func(slot uint16) bool) {
	for i, word := range s.words {
		for ; word != 0; word &= word - 1 {
			if !f(uint16(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// CopyTo writes the slots to bits, which are clear and have as many bits.
func (s *Set) CopyTo(bits []uint64) { copy(bits, s.words[:]) }

// A list of slots is written as distances between slots. A distance below 128 takes one byte;
// others take two: seven bits with the highest bit set, then seven more. If that takes as many
// bytes as the set's words, the words are written instead, little endian. Distances shrink the
// index by a third, and decoding them costs no more time than they save in memory access.
const (
	slotSize = 2 // bytes of a slot in a list, at most
	setSize  = BlockLen / 8
)

// appendList appends the encoded list of ascending slots.
func appendList(dst []byte, slots []uint16) []byte {
	begun, next := len(dst), uint16(0)
	for _, slot := range slots {
		d := slot - next
		next = slot + 1
		if d < 0x80 {
			dst = append(dst, byte(d))
		} else {
			dst = append(dst, byte(d)|0x80, byte(d>>7))
		}
		if len(dst)-begun >= setSize {
			break
		}
	}
	if len(dst)-begun < setSize {
		return dst
	}
	var s Set
	for _, slot := range slots {
		s.Add(slot)
	}
	dst = dst[:begun]
	for _, word := range s.words {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	return dst
}

// addList adds the slots of an encoded list; if within is not nil, only those in within.
func (s *Set) addList(list []byte, within *Set) {
	if len(list) == setSize {
		for i := range s.words {
			word := binary.LittleEndian.Uint64(list[8*i:])
			if within != nil {
				word &= within.words[i]
			}
			s.words[i] |= word
		}
		return
	}
	next := uint(0)
	for i := 0; i < len(list); i++ {
		d := uint(list[i])
		if d >= 0x80 {
			i++
			d = d&0x7f | uint(list[i])<<7
		}
		next += d
		slot := uint16(next % BlockLen) // keeps a damaged list in bounds
		if within == nil || within.Has(slot) {
			s.Add(slot)
		}
		next++
	}
}
