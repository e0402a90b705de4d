package readmodel

import (
	"context"
	mathbits "math/bits"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/maypok86/otter/v2"
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

// matcher looks for the needle of a query in rows.
type matcher struct {
	text   TextOf
	needle needle
}

func (q *TextQuery) matcher() matcher { return matcher{q.Text, newNeedle(q.Needle)} }

// matches reports whether the row's text contains the needle.
func (m *matcher) matches(r *Row) bool {
	switch m.text {
	case TextOfChatIDs:
		return m.needle.isIn(r.foldedChat())
	case TextOfNames:
		return m.needle.isIn(r.nameAndChat())
	default:
		return m.needle.isIn(r.text())
	}
}

// TextIndex is the state of a text index at one moment, as searches use it. It never changes, and
// any goroutine may use it. Package exact implements it.
//
// An index may lag, lack rows or fail to read its files, but it must not miss a row. If it is
// unsure of a row, it reports it as possible, and the search reads the row (promise 6).
type TextIndex interface {
	// Coverage returns the sequence up to which the index has every change, or false if v is too
	// old for it.
	Coverage(v *View) (sequence uint64, ok bool)
	// Candidates calls found for each block of the list, in ascending order; first is the first
	// slot of the block. Among the rows that have not changed since the index's sequence, those in
	// sure match q in v, those in maybe may match, and no others do. The sets are valid during the
	// call, and found may change them. The only error is ctx's.
	Candidates(ctx context.Context, v *View, q TextQuery, found func(first uint32, sure, maybe Slots)) error
}

// BlockLen is the number of slots that a TextIndex reports at once.
const BlockLen = 1 << 14

// Slots is a set of slots of one block, counted from the first slot of the block.
type Slots interface {
	// Each calls f with the slots in ascending order until it returns false.
	Each(f func(slot uint16) bool)
	// Add adds a slot and reports whether it was missing.
	Add(slot uint16) bool
	// CopyTo writes the slots to bits, which are clear and have room for a block.
	CopyTo(bits []uint64)
}

// UseTextIndex makes searches use x from now on, including those of older views. If x is nil, they
// use none. Any goroutine may call it.
func (m *Model) UseTextIndex(x TextIndex) {
	if x == nil {
		m.text.index.Store(nil)
		return
	}
	m.text.index.Store(&x)
}

// textSearch speeds up text searches and may be missing or lag: the text index and a cache of
// results. A Model and all its views share it; any goroutine may use it. It never changes a result:
// see View.matching.
type textSearch struct {
	index        atomic.Pointer[TextIndex] // nil if there is none
	cache        *otter.Cache[TextQuery, *cachedMatches]
	bound        uint64        // of the cache, in bytes; only the model's owner uses it
	hits, misses atomic.Uint64 // of the cache
	bits         sync.Pool     // of *bitset
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

// cachedMatches is the exact result of a TextQuery at one sequence. It never changes.
type cachedMatches struct {
	matchSet
	sequence uint64
	bytes    uint32
}

// A result takes up to a bit a row, so the memory for a few thousand popular searches grows with
// the registry.
const (
	minCacheBytes      = 24 << 20
	cacheBytesPerEntry = 240
	cacheShare         = 16 // of the memory limit, at most the 16th part
)

// cacheBytes returns the bound of the cache for a registry of entries entries.
func cacheBytes(entries int) uint64 {
	limit := uint64(debug.SetMemoryLimit(-1)) / cacheShare // a negative limit only reads it
	return max(minCacheBytes, min(uint64(entries)*cacheBytesPerEntry, limit))
}

// fit sizes the cache for a registry of entries entries. Only the model's owner calls it. It
// ignores changes of less than an eighth, so that it costs a batch nothing.
func (t *textSearch) fit(entries int) {
	if want := cacheBytes(entries); want > t.bound+t.bound/8 || want < t.bound-t.bound/8 {
		t.bound = want
		t.cache.SetMaximum(want)
	}
}

func newTextSearch() *textSearch {
	return &textSearch{bound: minCacheBytes, cache: otter.Must(&otter.Options[TextQuery, *cachedMatches]{
		MaximumWeight: minCacheBytes,
		Weigher:       func(q TextQuery, m *cachedMatches) uint32 { return m.bytes + uint32(len(q.Needle)) },
		Executor:      func(f func()) { f() }, // runs f in the caller's goroutine
	})}
}

// remember caches m, the result of q at sequence.
func (t *textSearch) remember(q TextQuery, sequence uint64, m matchSet) {
	const overhead = 320
	t.cache.Set(q, &cachedMatches{m, sequence, uint32(m.slots.GetSizeInBytes()) + overhead})
}

// SearchCache describes a model's cache of search results. Hits and Misses count the searches since
// the model was made that did and did not find their result in it.
type SearchCache struct {
	Searches     int
	Bytes        uint64 // estimated
	Hits, Misses uint64
}

// SearchCache describes the cache that all views of a model share.
func (v *View) SearchCache() SearchCache {
	t := v.text
	return SearchCache{t.cache.EstimatedSize(), t.cache.WeightedSize(), t.hits.Load(), t.misses.Load()}
}

// search returns a page of the rows whose text contains the search of q.
func (v *View) search(ctx context.Context, q *ListQuery) (Page, error) {
	m, err := v.matching(ctx, TextQuery{listIndex(q.List), TextOfAll, fold(q.Search)})
	if err != nil {
		return Page{}, err
	}
	return v.list(q.List).pageOf(&m, q, v.text), nil
}

// matching returns exactly the rows that match q. The caller must not change the result. The only
// error is ctx's.
//
// It starts from a cached result or from the index and rescans every row that has changed since.
// With neither, it scans every row. So an index or a result that lags or is missing makes a search
// slower, never wrong (promise 6).
func (v *View) matching(ctx context.Context, q TextQuery) (matchSet, error) {
	if c, ok := v.text.cache.GetIfPresent(q); ok && c.sequence <= v.sequence {
		if changes, ok := v.changes.since(c.sequence); ok && v.worthUpdating(c, len(changes)) {
			m := c.matchSet
			if v.update(&m, &q, changes); len(changes) > 0 {
				v.text.remember(q, v.sequence, m)
			}
			v.text.hits.Add(1)
			return m, nil
		}
	}
	v.text.misses.Add(1)
	m, err := v.find(ctx, q)
	if err == nil {
		v.text.remember(q, v.sequence, m)
	}
	return m, err
}

// worthUpdating reports whether rescanning changes rows that have changed since c is cheaper than
// searching the index again.
func (v *View) worthUpdating(c *cachedMatches, changes int) bool {
	const few = 512
	if changes <= few || uint64(changes) < c.slots.GetCardinality() {
		return true
	}
	x := v.text.index.Load()
	if x == nil {
		return true
	}
	sequence, ok := (*x).Coverage(v)
	return !ok || sequence <= c.sequence
}

// usableIndex returns the index, if v can use one, and the changes that it may lack.
func (v *View) usableIndex() (x TextIndex, unknown []loggedChange) {
	p := v.text.index.Load()
	if p == nil {
		return nil, nil
	}
	sequence, ok := (*p).Coverage(v)
	if ok {
		unknown, ok = v.changes.since(sequence)
	}
	if !ok {
		return nil, nil
	}
	return *p, unknown
}

// find searches the index, or scans every row if v can use no index.
func (v *View) find(ctx context.Context, q TextQuery) (matchSet, error) {
	x, changes := v.usableIndex()
	chunks := len(v.lists[q.List].rows.chunks)
	bits := v.text.takeBits((chunks*chunkLen + BlockLen - 1) / BlockLen * BlockLen)
	defer v.text.bits.Put(bits)
	look := v.scan
	if x != nil {
		look = func(ctx context.Context, q TextQuery, bits bitset) error { return v.findIndexed(ctx, x, q, bits) }
	}
	if err := look(ctx, q, *bits); err != nil {
		return matchSet{}, err
	}
	v.lookAgain(changes, &q, *bits)
	return matchSet{roaring.FromDense(*bits, true), v.lists[q.List].countFilters(*bits)}, nil
}

// lookAgain updates bits, the result of q before changes, to v.
func (v *View) lookAgain(changes []loggedChange, q *TextQuery, bits bitset) {
	rows, look := &v.lists[q.List].rows, q.matcher()
	for _, c := range changes {
		if c.ref.List() != q.List {
			continue
		}
		slot := c.ref.Slot()
		if r := rows.get(slot); r != nil && look.matches(r) {
			bits[slot/64] |= 1 << (slot % 64)
		} else {
			bits[slot/64] &^= 1 << (slot % 64)
		}
	}
}

// findIndexed adds the index's candidates that match.
func (v *View) findIndexed(ctx context.Context, x TextIndex, q TextQuery, bits bitset) error {
	rows, look := &v.lists[q.List].rows, q.matcher()
	var block uint32
	var matching Slots
	read := func(slot uint16) bool {
		if r := rows.get(block + uint32(slot)); r != nil && look.matches(r) {
			matching.Add(slot)
		}
		return true
	}
	return x.Candidates(ctx, v, q, func(first uint32, sure, maybe Slots) {
		block, matching = first, sure
		maybe.Each(read)
		if at := int(first / 64); at < len(bits) { // otherwise v is older than the whole block
			sure.CopyTo(bits[at:])
		}
	})
}

// scan adds the rows of the list that match, by reading each.
func (v *View) scan(ctx context.Context, q TextQuery, bits bitset) error {
	look := q.matcher()
	for n, chunk := range v.lists[q.List].rows.chunks {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for i, r := range chunk.values {
			if r != nil && look.matches(r) {
				slot := n*chunkLen + i
				bits[slot/64] |= 1 << (slot % 64)
			}
		}
	}
	return nil
}

// update updates m, the result of q before changes, to v. It copies slots before it changes them.
func (v *View) update(m *matchSet, q *TextQuery, changes []loggedChange) {
	if len(changes) == 0 {
		return
	}
	rows, own, look := &v.lists[q.List].rows, false, q.matcher()
	for _, c := range changes {
		if c.ref.List() != q.List {
			continue
		}
		r := rows.get(c.ref.Slot())
		was, is := m.slots.Contains(c.ref.Slot()), r != nil && look.matches(r)
		m.counts.update(&c, was, is)
		if is == was {
			continue
		}
		if !own {
			m.slots, own = m.slots.Clone(), true
		}
		if is {
			m.slots.Add(c.ref.Slot())
		} else {
			m.slots.Remove(c.ref.Slot())
		}
	}
}

// matchSet is the result of a text search before filters, order and page. A cached one never
// changes.
type matchSet struct {
	slots  *roaring.Bitmap // of the list; some may be empty
	counts filterCounts    // of the rows in them
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

// update applies one change of a row that was, or is now, among the counted rows. Several changes
// of one slot come in order, each from the state after the one before, so intermediate states
// cancel out.
func (c *filterCounts) update(change *loggedChange, was, is bool) {
	if was {
		c[change.before]--
	}
	if is {
		c[change.after]++
	}
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
func (l *listView) pageOf(m *matchSet, q *ListQuery, t *textSearch) Page {
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
		return Page{Rows: l.walkThrough(m.slots, q, n, steps, t), Total: total}
	}
	rows := make([]*Row, 0, total)
	m.slots.Iterate(func(slot uint32) bool {
		if r := l.rows.get(slot); r != nil && r.filter.match(q.Status, q.Proofs) {
			rows = append(rows, r)
		}
		return true
	})
	l.sort(rows, q.Sort)
	return Page{Rows: slices.Clip(rows[q.Skip : q.Skip+n]), Total: total}
}

// walkThrough walks q's order, for about steps steps, and returns n rows in slots, after q.Skip
// others.
func (l *listView) walkThrough(slots *roaring.Bitmap, q *ListQuery, n, steps int, t *textSearch) []*Row {
	has := slots.Contains
	if steps > 1000 { // making a bitset pays off
		bits := t.takeBits(int(slots.DenseSize()) * 64)
		defer t.bits.Put(bits)
		slots.WriteDenseTo(*bits)
		has = bits.has
	}
	rows := make([]*Row, 0, n)
	skip := q.Skip
	l.eachSlot(q, 0, func(slot uint32) bool {
		if !has(slot) {
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
