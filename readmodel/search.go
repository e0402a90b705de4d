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
	Text   TextOf // all for a search of a list, names or ids for a check
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
		return m.needle.in(r.foldedChat())
	case TextOfNames:
		return m.needle.in(r.nameAndChat())
	default:
		return m.needle.in(r.text())
	}
}

// TextIndex is what a search asks of a text index: its state at one moment. It never changes, and
// any goroutine may use it. Package exact makes them.
//
// An index may lag, lack rows or fail to read its files. It must not miss a row: it returns a row
// that it is not sure of as possible, and the search reads the row (promise 6).
type TextIndex interface {
	// Coverage returns the sequence up to which the index knows every change, or false if v is too
	// old for it.
	Coverage(v *View) (sequence uint64, ok bool)
	// Candidates calls found for each block of the list, in ascending order; first is the first slot
	// of the block. Of the rows that have not changed since the index's sequence, those in sure
	// match q in v, those in maybe may, and no others do. The sets are valid during the call, and
	// found may change them. The only error is ctx's.
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

// UseTextIndex has searches ask x from now on, in views of the past too. Nil: none. Any goroutine
// may call it.
func (m *Model) UseTextIndex(x TextIndex) {
	if x == nil {
		m.text.index.Store(nil)
		return
	}
	m.text.index.Store(&x)
}

// textSearch is what makes text searches fast and may be missing or lag: the text index and a cache
// of results. It belongs to a Model, and all its views share it; any goroutine may use it. Nothing
// in it decides an answer: see View.matching.
type textSearch struct {
	index        atomic.Pointer[TextIndex] // nil: there is none
	cache        *otter.Cache[TextQuery, *cachedMatches]
	bound        uint64        // of the cache, in bytes; only the model's owner uses it
	hits, misses atomic.Uint64 // of the cache
	bits         sync.Pool     // of *bitset
}

// bitset is a set of slots of a list, a bit for each. The caller of takeBits puts it back.
type bitset []uint64

// takeBits returns an empty set for slots below so many.
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

// cachedMatches is the exact answer to a TextQuery at one sequence. It never changes.
type cachedMatches struct {
	matchSet
	sequence uint64
	bytes    uint32
}

// A result takes up to a bit a row, so what a few thousand popular searches need grows with the
// registry.
const (
	minCacheBytes      = 24 << 20
	cacheBytesPerEntry = 240
	cacheShare         = 16 // of the memory limit, at most the 16th part
)

// cacheBytes returns the bound of the cached results of a registry of so many entries.
func cacheBytes(entries int) uint64 {
	limit := uint64(debug.SetMemoryLimit(-1)) / cacheShare // a negative limit only reads it
	return max(minCacheBytes, min(uint64(entries)*cacheBytesPerEntry, limit))
}

// fit makes the cache as large as a registry of so many entries needs. Only the model's owner calls
// it. Changes of less than an eighth wait, so that it costs a batch nothing.
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
		Executor:      func(f func()) { f() }, // no goroutine that nobody waits for
	})}
}

// remember caches m, the answer to q at sequence.
func (t *textSearch) remember(q TextQuery, sequence uint64, m matchSet) {
	const overhead = 320
	t.cache.Set(q, &cachedMatches{m, sequence, uint32(m.slots.GetSizeInBytes()) + overhead})
}

// SearchCache describes a model's cache of search results. Hits and Misses count the searches since
// the model was made that found their result in it and that did not.
type SearchCache struct {
	Searches     int
	Bytes        uint64 // by estimate
	Hits, Misses uint64
}

// SearchCache describes the cache that all views of a model share.
func (v *View) SearchCache() SearchCache {
	t := v.text
	return SearchCache{t.cache.EstimatedSize(), t.cache.WeightedSize(), t.hits.Load(), t.misses.Load()}
}

// search answers a page of the rows whose text contains what q searches for.
func (v *View) search(ctx context.Context, q *ListQuery) (Page, error) {
	m, err := v.matching(ctx, TextQuery{listIndex(q.List), TextOfAll, fold(q.Search)})
	if err != nil {
		return Page{}, err
	}
	return v.list(q.List).pageOf(&m, q, v.text), nil
}

// matching returns exactly the rows that match q. The caller only reads the result. The only error
// is ctx's.
//
// An answer is a cached result, or what the index finds, plus a look at every row that has changed
// since; or a look at every row. So an index or a result that lags or is missing makes a search
// slower and never wrong (promise 6).
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

// worthUpdating reports whether looking at so many changes since c is cheaper than asking the index
// again.
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

// usableIndex returns the index, if there is one that v can use, and the changes that it may not
// know of.
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

// find asks the index, or looks at every row if there is no index that v can use.
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

// lookAgain brings bits, the answer to q before changes, to v.
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
		if at := int(first / 64); at < len(bits) { // else v is older than all of the block
			sure.CopyTo(bits[at:])
		}
	})
}

// scan adds the rows of the list that match, by a look at each.
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

// update brings m, the answer to q before changes, to v. Slots that change do so in a copy.
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

// matchSet is the answer to a text search before filters, order and page. A cached one never
// changes.
type matchSet struct {
	slots  *roaring.Bitmap // of the list; some may be empty
	counts filterCounts    // of the rows in them
}

// filterCounts is how many rows there are of each filterBits, so that a total is known under every
// filter without a look at the rows.
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

// update follows one change of a row that was, or is now, among those counted. Several changes of
// one slot come one after another, each from the state that the one before left, so what lies
// between cancels out.
func (c *filterCounts) update(change *loggedChange, was, is bool) {
	if was {
		c[change.before]--
	}
	if is {
		c[change.after]++
	}
}

// count returns how many of the rows q's filters let through.
func (c *filterCounts) count(q *ListQuery) (total int) {
	for f, n := range c {
		if filterBits(f).match(q.Status, q.Proofs) {
			total += int(n)
		}
	}
	return total
}

// pageOf returns the page that q asks for of the rows in m. Many rows are found by walking the
// order until the page is full; few are taken out and sorted.
func (l *listView) pageOf(m *matchSet, q *ListQuery, t *textSearch) Page {
	total := m.counts.count(q)
	n := min(q.Limit, total-q.Skip)
	if n <= 0 {
		return Page{Total: total}
	}
	// Sorting costs about forty times as much a row as walking past one, which passes those that the
	// filters leave out at a sixth of that.
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

// walkThrough walks q's order, some steps presumably, and returns n rows in slots, after q.Skip
// others.
func (l *listView) walkThrough(slots *roaring.Bitmap, q *ListQuery, n, steps int, t *textSearch) []*Row {
	has := slots.Contains
	if steps > 1000 { // then many bits are made in less time
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
