package exact

import (
	"context"
	"sync"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/exact/textindex"
)

// index is the index of all lists at one moment: a readmodel.TextIndex made of blocks. It never
// changes once it has been published.
type index struct {
	since    uint64 // changes before it were not followed, so older views cannot use the index
	sequence uint64 // every change from since up to here is known to a part
	lists    [events.NumLists][]part
	scratch  *sync.Pool // of *scratch
}

// scratch is the memory of a search.
type scratch struct {
	query       textindex.Scratch
	sure, maybe textindex.Set
	small       [2]textindex.Set // what is sure of a small block, and what may be
}

// part is the index of textindex.BlockLen neighboring slots of a list.
type part struct {
	large     *textindex.Block // of all rows, when it was built; nil: empty
	small     *textindex.Block // of the rows in inSmall, which have changed since
	inSmall   *textindex.Set   // nil: none
	unindexed *textindex.Set   // rows that changed after either, or did not fit: searches look at them. Nil: none
	built     uint64           // sequence of the view that the newer block was made from

	plan // of the builder; searches do not look at it
}

// Coverage is part of readmodel.TextIndex.
func (x *index) Coverage(v *readmodel.View) (sequence uint64, ok bool) {
	return x.sequence, x.since <= v.Sequence()
}

// Candidates is part of readmodel.TextIndex.
func (x *index) Candidates(ctx context.Context, v *readmodel.View, q readmodel.TextQuery, found func(first uint32, sure, maybe readmodel.Slots)) error {
	s, ok := x.scratch.Get().(*scratch)
	if !ok {
		s = &scratch{}
	}
	defer x.scratch.Put(s)
	query := textindex.NewQuery(textOf(q.Text), q.Needle, &s.query)
	for i := range x.lists[q.List] {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		x.lists[q.List][i].find(v, query, s)
		found(uint32(i)*textindex.BlockLen, &s.sure, &s.maybe)
	}
	return nil
}

// textOf returns the text of a block that a query is about.
func textOf(t readmodel.TextOf) textindex.Text {
	switch t {
	case readmodel.TextOfNames:
		return textindex.Names
	case readmodel.TextOfChatIDs:
		return textindex.ChatIDs
	default:
		return textindex.All
	}
}

// A block of textindex is a block of readmodel.
const _ = uint(textindex.BlockLen-readmodel.BlockLen) + uint(readmodel.BlockLen-textindex.BlockLen)

// find sets s.sure to the slots of the part whose rows match q in v, and s.maybe to the others that
// may.
func (p *part) find(v *readmodel.View, q *textindex.Query, s *scratch) {
	sure, maybe := &s.sure, &s.maybe
	// An older view may have other texts than the blocks. A block that cannot be read makes a
	// search slower.
	if p.built > v.Sequence() || p.findInBlocks(q, s) != nil {
		sure.Clear()
		maybe.Fill()
		return
	}
	if p.unindexed != nil {
		sure.AndNot(p.unindexed)
		maybe.Or(p.unindexed)
	}
	maybe.AndNot(sure)
}

func (p *part) findInBlocks(q *textindex.Query, s *scratch) error {
	if err := p.large.Find(q, &s.sure, &s.maybe); err != nil || p.inSmall == nil {
		return err
	}
	s.sure.AndNot(p.inSmall)
	s.maybe.AndNot(p.inSmall)
	if err := p.small.Find(q, &s.small[0], &s.small[1]); err != nil {
		return err
	}
	s.sure.Or(&s.small[0])
	s.maybe.Or(&s.small[1])
	return nil
}
