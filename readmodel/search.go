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

// matching returns exactly the rows that match q; the caller returns its bits to the pool. The only
// error is ctx's.
//
// No result is cached: the bodies of responses are, and a search takes some milliseconds.
func (v *View) matching(ctx context.Context, q textQuery) (matchSet, error) {
	l := v.lists[q.list]
	bits := v.memory.takeBits(len(l.rows.chunks) * chunkLen)
	if err := l.find(ctx, &q, *bits); err != nil {
		v.memory.bits.Put(bits)
		return matchSet{}, err
	}
	return matchSet{bits, l.countFilters(*bits)}, nil
}

// find adds the rows that match q. Its only error is ctx's.
func (l *listView) find(ctx context.Context, q *textQuery, bits bitset) error {
	for block := range l.texts.blocks {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.texts.find(block, q, &l.rows, bits)
	}
	return nil
}

// matchSet is the result of a text search before filters, order and page.
type matchSet struct {
	bits   *bitset      // of the list; some slots may be empty
	counts filterCounts // of the rows in them
}

// filterCounts counts rows by filterBits, so that the total under any filter is known without
// reading the rows.
type filterCounts [bitShown << 1]int32

// countFilters counts the rows in bits.
func (l *listView) countFilters(bits bitset) (c filterCounts) {
	for n, chunk := range l.filters.chunks {
		at := n * chunkLen / 64
		if at >= len(bits) {
			break
		}
		for i, word := range bits[at:min(at+chunkLen/64, len(bits))] {
			for ; word != 0; word &= word - 1 {
				c[chunk.values[i*64+mathbits.TrailingZeros64(word)]]++
			}
		}
	}
	return c
}

// count returns how many of the rows pass q's filters.
func (c *filterCounts) count(q *ListQuery) (total int) {
	for f, n := range c {
		if filterBits(f).match(q.Status, q.Proofs) {
			total += int(n)
		}
	}
	return total
}

// pageOf returns the page of q among the rows in m. If there are many rows, it walks the order
// until the page is full; if there are few, it sorts them.
func (l *listView) pageOf(m *matchSet, q *ListQuery) Page {
	total := m.counts.count(q)
	n := min(q.Limit, total-q.Skip)
	if n <= 0 {
		return Page{Total: total}
	}
	// Sorting a row costs about forty times as much as walking past one; walking past a row that
	// the filters exclude costs a sixth of that.
	through := l.size(q)
	steps := (q.Skip + n) * through / total
	o, _ := q.Sort.order()
	if steps*max(1, l.trees[o].Len(classesOf(StatusAll, ProofsAll))/through/6) < 40*total {
		return Page{Rows: l.walkThrough(*m.bits, q, n), Total: total}
	}
	rows := make([]*Row, 0, total)
	m.bits.each(func(slot uint32) {
		if r := l.rows.get(slot); r != nil && r.filter.match(q.Status, q.Proofs) {
			rows = append(rows, r)
		}
	})
	l.sort(rows, q.Sort)
	return Page{Rows: slices.Clip(rows[q.Skip : q.Skip+n]), Total: total}
}

// walkThrough walks q's order and returns n rows in bits, after q.Skip others.
func (l *listView) walkThrough(bits bitset, q *ListQuery, n int) []*Row {
	rows := make([]*Row, 0, n)
	skip := q.Skip
	l.eachSlot(q, 0, func(slot uint32) bool {
		if !bits.has(slot) {
			return true
		}
		if skip > 0 {
			skip--
			return true
		}
		rows = append(rows, l.rows.get(slot))
		return len(rows) < n
	})
	return rows
}
