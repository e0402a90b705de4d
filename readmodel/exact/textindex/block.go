package textindex

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"runtime"
	"slices"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// Block is the index of up to readmodel.BlockLen texts. It never changes; any goroutine may use it.
// A nil Block is empty; the zero value cannot be read. Its memory is unmapped some time after the
// last reference is gone.
type Block struct {
	data       []byte // mapped
	vocabulary *Vocabulary
}

// Vocabulary returns the vocabulary that numbers the block's words, or nil for a nil Block.
func (b *Block) Vocabulary() *Vocabulary {
	if b == nil {
		return nil
	}
	return b.vocabulary
}

// Find sets sure to slots whose text contains the needle, and maybe to slots whose text may. No
// other slot's text contains it. A slot may be in both. Find fails if the block can no longer be
// read.
func (b *Block) Find(q *Query, sure, maybe *readmodel.Slots) error {
	sure.Clear()
	maybe.Clear()
	if b == nil {
		return nil
	}
	defer runtime.KeepAlive(b)
	return fault.Catch(func() error { b.find(q, sure, maybe); return nil })
}

const (
	// maxLists bounds the lists that are read for a needle, the shortest first. Further lists rule
	// out hardly any slots.
	maxLists = 16
	// lookBytes is how many bytes of lists can be read in the time of reading a slot's text.
	lookBytes = 256
)

func (b *Block) find(q *Query, sure, maybe *readmodel.Slots) {
	names := maybe
	if q.exactNames {
		names = sure
	}
	if b.mayHold(q) {
		b.havingGrams(q, q.names, names)
	}
	switch q.rest {
	case byGrams:
		b.havingGrams(q, q.grams, &q.found)
		sure.Or(&q.found)
	case byWord:
		b.havingWords(q, &q.found)
		sure.Or(&q.found)
	case byWords:
		b.havingWords(q, &q.found)
		maybe.Or(&q.found)
	case unindexed:
		maybe.Fill()
	}
}

// havingGrams sets found to the slots that have a gram of each span. Lists that are short in one
// block are short in most. So the first block orders the spans, and the others seldom look up more
// than the first few.
func (b *Block) havingGrams(q *Query, spans []span, found *readmodel.Slots) {
	if !q.ordered && len(spans) > 1 {
		q.ordered = true
		for i := range spans {
			spans[i].bytes = b.bytesOf(b.listsOf(spans[i]))
		}
		slices.SortFunc(spans, func(x, y span) int { return cmp.Compare(x.bytes, y.bytes) })
	}
	q.lists = q.lists[:0]
	b.intersect(q, len(spans), func(i int) choice {
		first, end := b.listsOf(spans[i])
		c := choice{len(q.lists), len(q.lists) + end - first, b.bytesOf(first, end)}
		for ; first < end; first++ {
			q.lists = append(q.lists, int32(first))
		}
		return c
	}, found)
}

// havingWords sets found to slots that have a word of each condition, or of most.
func (b *Block) havingWords(q *Query, found *readmodel.Slots) {
	q.choices, q.lists = q.choices[:0], q.lists[:0]
	for _, c := range q.answer(b.vocabulary).conditions {
		q.choices = append(q.choices, b.choose(q, &c))
	}
	slices.SortFunc(q.choices, func(x, y choice) int { return cmp.Compare(x.bytes, y.bytes) })
	b.intersect(q, len(q.choices), func(i int) choice { return q.choices[i] }, found)
}

// choice is a range of lists of a block, and their size. A matching slot is in one of them.
type choice struct{ first, end, bytes int } // in Query.lists

// choose finds the lists of a condition's words.
func (b *Block) choose(q *Query, cond *condition) choice {
	c := choice{first: len(q.lists)}
	take := func(i int) {
		q.lists = append(q.lists, int32(i))
		c.bytes += b.start(i+1) - b.start(i)
	}
	first, end := b.listsOf(span{low: cond.kind, high: cond.kind | numberMask})
	words := &cond.words
	if n := end - first; words.bits != nil && len(words.numbers)*bits.Len(uint(n)) > n {
		for i := first; i < end; i++ {
			if words.has(uint32(b.gram(i))) {
				take(i)
			}
		}
	} else {
		for _, number := range words.numbers {
			g := cond.kind | gram(number)
			if first = b.search(first, end, g); first < end && b.gram(first) == g {
				take(first)
			}
		}
	}
	c.end = len(q.lists)
	return c
}

// intersect sets found to the slots that are in a list of each of n choices, the shortest first. It
// expects each list to rule out as many slots as the one before, and stops when reading the texts of
// those slots costs less than reading the lists.
func (b *Block) intersect(q *Query, n int, nth func(i int) choice, found *readmodel.Slots) {
	found.Clear()
	slots, ruledOut := 0, 0
	for i := range n {
		c := nth(i)
		if i == 0 {
			b.union(q, c, found, nil)
			slots = found.Len()
			ruledOut = slots
			continue
		}
		if i == maxLists || min(slots, ruledOut)*lookBytes <= c.bytes {
			return
		}
		q.narrowed.Clear()
		b.union(q, c, &q.narrowed, found)
		found.And(&q.narrowed)
		before := slots
		slots = found.Len()
		ruledOut = before - slots
	}
}

// union adds the slots of the lists of c; if within is not nil, only those in within.
func (b *Block) union(q *Query, c choice, to, within *readmodel.Slots) {
	for _, i := range q.lists[c.first:c.end] {
		addList(to, b.data[b.start(int(i)):b.start(int(i)+1)], within)
	}
}

// listsOf returns the range of lists, first to before end, of the grams of s.
func (b *Block) listsOf(s span) (first, end int) {
	n := b.lists()
	first = b.search(0, n, s.low)
	if s.low == s.high {
		if first < n && b.gram(first) == s.low {
			return first, first + 1
		}
		return first, first
	}
	return first, b.search(first, n, s.high+1)
}

// search returns the number of the first list from first on, and before end, whose gram is g or greater.
func (b *Block) search(first, end int, g gram) int {
	for first < end {
		if middle := int(uint(first+end) / 2); b.gram(middle) < g {
			first = middle + 1
		} else {
			end = middle
		}
	}
	return first
}

// bytesOf returns the size of the lists from first to before end.
func (b *Block) bytesOf(first, end int) int { return b.start(end) - b.start(first) }

// lists returns the number of lists.
func (b *Block) lists() int { return int(binary.LittleEndian.Uint64(b.data)) }

func (b *Block) gram(i int) gram {
	return gram(binary.LittleEndian.Uint64(b.data[headSize+gramSize*i:]))
}

// start returns the offset at which list i begins and the list before it ends.
func (b *Block) start(i int) int {
	n := b.lists()
	first := headSize + entrySize*n
	if i == 0 {
		return first
	}
	return first + int(binary.LittleEndian.Uint32(b.data[headSize+gramSize*n+endSize*(i-1):]))
}
