package textblock

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/bits-and-blooms/bitset"
)

// column is texts one after the other, with a line feed before the first and after each.
type column struct {
	text   []byte
	starts []uint32 // position in text of each one
	sieve  sieve
}

func (c *column) addText(text string) {
	if len(c.text) == 0 {
		c.text = append(c.text, '\n')
	}
	c.starts = append(c.starts, uint32(len(c.text)))
	c.text = append(append(c.text, text...), '\n')
}

// close prepares c for find, after the last addText.
func (c *column) close() {
	c.text = slices.Clone(c.text) // without spare room, since the block lives for hours
	c.starts = slices.Clone(c.starts)
	c.sieve = newSieve(c.text)
}

// find calls f with the number of each text that contains piece, in order. A piece that begins or ends
// with a line feed is found only at the beginning or end of a text.
func (c *column) find(piece string, f func(n int)) {
	raw := []byte(piece)
	if !c.sieve.mayHold(raw) {
		return
	}

	for n := 0; n < len(c.starts); n++ {
		// Begin at the line feed before text n.
		pos := int(c.starts[n]) - 1
		i := bytes.Index(c.text[pos:], raw)
		if i < 0 {
			return
		}

		match := uint32(pos + i) // a position in the text that has the piece
		if piece[0] == '\n' {
			match++ // the line feed is before the text
		}

		// Go on to the text of the match. One by one is fast enough: bytes.Index took longer for the same texts.
		for n+1 < len(c.starts) && c.starts[n+1] <= match {
			n++
		}
		f(n)
	}
}

// findTexts adds the number of each text that contains piece.
func (c *column) findTexts(piece string, found *bitset.BitSet) {
	c.find(piece, func(n int) { found.Set(uint(n)) })
}

// sieve rules out most pieces that a column lacks. It has a bit for the hash of any six consecutive bytes.
type sieve []uint64

const (
	window    = 6
	sieveBits = 19
)

func newSieve(text []byte) sieve {
	s := make(sieve, 1<<sieveBits/64)
	for i := range len(text) - window + 1 {
		bit := windowBit(text[i:])
		s[bit/64] |= 1 << (bit % 64)
	}
	return s
}

// windowBit returns the number of the sieve's bit for the first six bytes of b: the top bits of their hash. b has at
// least six bytes.
func windowBit(b []byte) uint32 {
	var room [8]byte
	copy(room[:window], b)
	return uint32(binary.LittleEndian.Uint64(room[:]) * 0x9e3779b97f4a7c15 >> (64 - sieveBits))
}

// mayHold returns false only if the text lacks piece. A piece that is shorter than window has no bit to look at,
// so mayHold returns true.
func (s sieve) mayHold(piece []byte) bool {
	for i := range len(piece) - window + 1 {
		if bit := windowBit(piece[i:]); s[bit/64]>>(bit%64)&1 == 0 {
			return false
		}
	}
	return true
}
