package textindex

import (
	"encoding/binary"
	"math/bits"
)

// Set is a set of slots of one block: numbers below BlockLen. The zero value is empty.
type Set [BlockLen / 64]uint64

// Add adds a slot and reports whether it was not there.
func (s *Set) Add(slot uint16) bool {
	word, bit := &s[slot/64], uint64(1)<<(slot%64)
	is := *word&bit == 0
	*word |= bit
	return is
}

// Has reports whether a slot is in the set.
func (s *Set) Has(slot uint16) bool { return s[slot/64]>>(slot%64)&1 != 0 }

// Len returns the number of slots.
func (s *Set) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Fill adds every slot.
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

// and removes the slots that are not in o.
func (s *Set) and(o *Set) {
	for i := range s {
		s[i] &= o[i]
	}
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

// A list of slots is written as the distances from one to the next, each in one byte, or in two
// where it is 128 or more: seven bits and the highest set, then seven more. Where that takes as
// many bytes as the set's words, these are written, little endian. Distances save a third of the
// index, and reading them takes no longer than what they save in memory to be touched.
const (
	slotSize = 2 // of a slot in a list, at most
	setSize  = BlockLen / 8
)

// appendList appends what is written of ascending slots.
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
		s[slot/64] |= 1 << (slot % 64)
	}
	dst = dst[:begun]
	for _, word := range s {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	return dst
}

// addList adds a written list.
func (s *Set) addList(list []byte) {
	if len(list) == setSize {
		for i := range s {
			s[i] |= binary.LittleEndian.Uint64(list[8*i:])
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
		s[next/64%uint(len(s))] |= 1 << (next % 64) // a damaged list may go on for ever
		next++
	}
}
