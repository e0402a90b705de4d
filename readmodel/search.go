package readmodel

import (
	"context"
	mathbits "math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// TextQuery asks which rows of a list have a text that contains a needle.
type TextQuery struct {
	List   int    // index in events.Lists
	Text   TextOf // everything for a search of a list, names or ids for a check
	Needle string // folded, not empty
}

// TextOf selects a part of a row's text.
type TextOf uint8

// The parts: everything, name and chat id, or chat id alone.
const (
	TextOfAll TextOf = iota
	TextOfNames
	TextOfChatIDs
)

// matches reports whether the row's text contains the needle.
func (q *TextQuery) matches(r *Row) bool {
	switch q.Text {
	case TextOfChatIDs:
		return strings.Contains(r.foldedChat(), q.Needle)
	case TextOfNames:
		return strings.Contains(r.names, q.Needle)
	default:
		return strings.Contains(r.text, q.Needle)
	}
}

// TextIndex is the state of a text index at one moment, as searches use it. It never changes, and
// any goroutine may use it. Package exact implements it.
//
// An index may lag, lack rows or fail to read its files, but it must not miss a row. If it is
// unsure of a row, it reports it as possible, and the search reads the row (promise 6).
type TextIndex interface {
	// Coverage returns the version up to which the index has every change, or false if v is too
	// old for it.
	Coverage(v *View) (version uint64, ok bool)
	// Candidates calls found for each block of the list, in ascending order; first is the first
	// slot of the block. Among the rows that have not changed since the index's version, those in
	// sure match q in v, those in maybe may match, and no others do. The sets are valid during the
	// call, and found may change them. The only error is ctx's.
	Candidates(ctx context.Context, v *View, q TextQuery, found func(first uint32, sure, maybe *Slots)) error
}

// UseTextIndex makes searches use x from now on, in older views too. If x is nil, they
// use none. Any goroutine may call it.
func (m *Model) UseTextIndex(x TextIndex) {
	if x == nil {
		m.text.index.Store(nil)
		return
	}
	m.text.index.Store(&x)
}

// textSearch has the text index, which may be missing or lag, and memory for searches. A Model and all
// its views share it; any goroutine may use it. It never changes a result: see View.matching.
type textSearch struct {
	index atomic.Pointer[TextIndex] // nil if there is none
	bits  sync.Pool                 // of *bitset
}

// bitset is a set of slots of a list, a bit for each. The caller of takeBits returns it to the
// pool.
type bitset []uint64

// takeBits returns an empty set for slots below slots.
func (t *textSearch) takeBits(slots int) *bitset {
	b, ok := t.bits.Get().(*bitset)
	if !ok {
		b = &bitset{}
	}
	n := (slots + 63) / 64
	*b = slices.Grow((*b)[:0], n)[:n]
	clear(*b)
	return b
}

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
// It asks the index and scans every row that has changed since. Without an index, it scans every
// row. So an index that lags or is missing makes a search slower, never wrong (promise 6).
//
// No result is cached: the bodies of responses are, and a search takes some milliseconds. Updating
// cached results from the change log saved them where a search is repeated after a change, or its
// second page is read (BenchmarkSearch).
func (v *View) matching(ctx context.Context, q TextQuery) (matchSet, error) {
	x, changes := v.usableIndex()
	chunks := len(v.lists[q.List].rows.chunks)
	bits := v.text.takeBits((chunks*chunkLen + BlockLen - 1) / BlockLen * BlockLen)
	look := v.scan
	if x != nil {
		look = func(ctx context.Context, q TextQuery, bits bitset) error { return v.findIndexed(ctx, x, q, bits) }
	}
	if err := look(ctx, q, *bits); err != nil {
		v.text.bits.Put(bits)
		return matchSet{}, err
	}
	v.recheck(changes, &q, *bits)
	return matchSet{bits, v.lists[q.List].countFilters(*bits)}, nil
}

// usableIndex returns the index, if v can use one, and the changes that it may lack.
func (v *View) usableIndex() (x TextIndex, unknown []loggedChange) {
	p := v.text.index.Load()
	if p == nil {
		return nil, nil
	}
	version, ok := (*p).Coverage(v)
	if ok {
		unknown, ok = v.changes.since(version)
	}
	if !ok {
		return nil, nil
	}
	return *p, unknown
}

// recheck corrects bits, which has the matches of q before some changes, for the rows that changed.
func (v *View) recheck(changes []loggedChange, q *TextQuery, bits bitset) {
	rows := &v.lists[q.List].rows
	for _, c := range changes {
		if c.ref.List() != q.List {
			continue
		}
		slot := c.ref.Slot()
		if r := rows.get(slot); r != nil && q.matches(r) {
			bits[slot/64] |= 1 << (slot % 64)
		} else {
			bits[slot/64] &^= 1 << (slot % 64)
		}
	}
}

// findIndexed adds the index's candidates that match.
func (v *View) findIndexed(ctx context.Context, x TextIndex, q TextQuery, bits bitset) error {
	rows := &v.lists[q.List].rows
	var block uint32
	var matching *Slots
	read := func(slot uint16) bool {
		if r := rows.get(block + uint32(slot)); r != nil && q.matches(r) {
			matching.Add(slot)
		}
		return true
	}
	return x.Candidates(ctx, v, q, func(first uint32, sure, maybe *Slots) {
		block, matching = first, sure
		maybe.Each(read)
		if at := int(first / 64); at < len(bits) { // otherwise v is older than the whole block
			copy(bits[at:], sure[:])
		}
	})
}

// scan adds the rows of the list that match, by reading each.
func (v *View) scan(ctx context.Context, q TextQuery, bits bitset) error {
	for n, chunk := range v.lists[q.List].rows.chunks {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for i, r := range chunk.values {
			if r != nil && q.matches(r) {
				slot := n*chunkLen + i
				bits[slot/64] |= 1 << (slot % 64)
			}
		}
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
