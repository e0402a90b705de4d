package readmodel

import (
	"context"
	mathbits "math/bits"
	"slices"
	"strings"
	"sync"
)

// textQuery asks which rows of a list have a text that contains a needle.
type textQuery struct {
	list   int // index in events.Lists
	part   textPart
	needle string // not empty
}

// textPart is the part of a row's text that a query is for.
type textPart uint8

const (
	allText  textPart = iota // folded name, chat id and reason
	nameText                 // folded name and chat id
	keyText                  // a look-alike key, with a line feed around it
)

// matches reports whether the row's text contains the needle.
func (q *textQuery) matches(r *Row) bool {
	switch q.part {
	case keyText:
		return strings.Contains("\n"+r.keys.Shape+"\n", q.needle) || strings.Contains("\n"+r.keys.Folded+"\n", q.needle)
	case nameText:
		return strings.Contains(r.names, q.needle)
	default:
		return strings.Contains(r.text, q.needle)
	}
}

// searchMemory is memory for searches, which a Model shares with all its views.
type searchMemory struct{ bits sync.Pool } // of *bitset

// bitset is a set of slots of a list, a bit for each. The caller of takeBits returns it to the
// pool.
type bitset []uint64

// takeBits returns an empty set for slots below slots.
func (t *searchMemory) takeBits(slots int) *bitset {
	b, ok := t.bits.Get().(*bitset)
	if !ok {
		b = &bitset{}
	}
	n := (slots + 63) / 64
	*b = slices.Grow((*b)[:0], n)[:n]
	clear(*b)
	return b
}

func (b bitset) add(slot uint32) { b[slot/64] |= 1 << (slot % 64) }

func (b bitset) has(slot uint32) bool {
	return int(slot/64) < len(b) && b[slot/64]>>(slot%64)&1 != 0
}

// each calls f with the slots in ascending order.
func (b bitset) each(f func(slot uint32)) {
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			f(uint32(i*64 + mathbits.TrailingZeros64(word)))
		}
	}
}

// matching returns exactly the rows of a list that match one of the queries; the caller returns the set to the pool. The only
// error is ctx's.
//
// No result is cached: the bodies of responses are, and a search takes some milliseconds.
func (v *View) matching(ctx context.Context, queries ...textQuery) (*bitset, error) {
	l := v.lists[queries[0].list]
	bits := v.memory.takeBits(len(l.rows.chunks) * chunkLen)
	for i := range queries {
		for block := range l.texts.blocks {
			if ctx.Err() != nil {
				v.memory.bits.Put(bits)
				return nil, ctx.Err()
			}
			l.texts.find(block, &queries[i], &l.rows, *bits)
		}
	}
	return bits, nil
}
