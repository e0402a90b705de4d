package textblock

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
)

// column is texts one after the other, with a line feed around each.
type column struct {
	text   []byte
	starts []uint32 // of each text
	sieve  sieve
}

func (c *column) add(text string) {
	if len(c.text) == 0 {
		c.text = append(c.text, '\n')
	}
	c.starts = append(c.starts, uint32(len(c.text)))
	c.text = append(append(c.text, text...), '\n')
}

// close is called after the last add.
func (c *column) close() {
	c.text, c.starts = slices.Clip(c.text), slices.Clip(c.starts)
	c.sieve.fill(c.text)
}

// find calls f with the number of each text that contains piece, in order. A line feed at an end of
// piece stands for an end of the text.
func (c *column) find(piece []byte, f func(n int)) {
	if !c.sieve.mayHold(piece) {
		return
	}
	for at, n := 0, 0; n < len(c.starts); {
		i := bytes.Index(c.text[at:], piece)
		if i < 0 {
			return
		}
		inside := uint32(at + i + len(piece) - 1) // of the text, also if piece begins with a line feed
		if len(piece) > 1 && piece[len(piece)-1] == '\n' {
			inside--
		}

		// The next text is seldom far away.
		step := 1
		for n+step < len(c.starts) && c.starts[n+step] <= inside {
			step *= 2
		}
		near := c.starts[n:min(n+step, len(c.starts))]
		n += sort.Search(len(near), func(i int) bool { return near[i] > inside }) - 1
		f(n)

		if n++; n < len(c.starts) {
			at = int(c.starts[n]) - 1
		}
	}
}

// sieve rules out most pieces that a column lacks: it knows every byte of the column, and has a bit for
// the hash of every six in a row.
type sieve struct {
	bytes [256]bool
	bits  []uint64
}

const (
	window    = 6
	sieveBits = 19
)

// windowBit returns the bit of the first bytes of b, which has at least eight.
func windowBit(b []byte) uint32 {
	return uint32((binary.LittleEndian.Uint64(b) & (1<<(8*window) - 1)) * 0x9e3779b97f4a7c15 >> (64 - sieveBits))
}

func (s *sieve) fill(text []byte) {
	s.bits = make([]uint64, 1<<sieveBits/64)
	set := func(b []byte) {
		bit := windowBit(b)
		s.bits[bit/64] |= 1 << (bit % 64)
	}
	for at, b := range text {
		s.bytes[b] = true
		if at+8 <= len(text) {
			set(text[at:])
		}
	}

	// The last windows have no eight bytes.
	for at := max(0, len(text)-7); at+window <= len(text); at++ {
		var room [8]byte
		copy(room[:], text[at:])
		set(room[:])
	}
}

func (s *sieve) mayHold(piece []byte) bool {
	for _, b := range piece {
		if !s.bytes[b] {
			return false
		}
	}
	for at := 0; at+window <= len(piece); at++ {
		var room [8]byte
		copy(room[:], piece[at:])
		if bit := windowBit(room[:]); s.bits[bit/64]>>(bit%64)&1 == 0 {
			return false
		}
	}
	return true
}
