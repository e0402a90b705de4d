package exact

import (
	"context"
	"sync"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/exact/textindex"
)

// index is a readmodel.TextIndex made of blocks: the index of all lists at one moment. It never
// changes once published.
type index struct {
	since   uint64 // version; earlier changes were not followed, so older views cannot use the index
	version uint64 // a part knows every change from since up to here
	lists   [events.NumLists][]part
	scratch *sync.Pool // of *scratch
}

// scratch is the memory of a search.
type scratch struct {
	query       textindex.Scratch
	sure, maybe readmodel.Slots
}

// part is the index of readmodel.BlockLen neighboring slots of a list.
type part struct {
	block     *textindex.Block // nil if empty
	unindexed *readmodel.Slots // rows that changed after it, or did not fit: searches scan them. Nil if there are none
	built     uint64           // version of the block's view

	plan // of the builder; searches do not read it
}

// Coverage implements readmodel.TextIndex.
func (x *index) Coverage(v *readmodel.View) (version uint64, ok bool) {
	return x.version, x.since <= v.Version()
}

// Candidates implements readmodel.TextIndex.
func (x *index) Candidates(ctx context.Context, v *readmodel.View, q readmodel.TextQuery, found func(first uint32, sure, maybe *readmodel.Slots)) error {
	s, ok := x.scratch.Get().(*scratch)
	if !ok {
		s = &scratch{}
	}
	defer x.scratch.Put(s)
	query := textindex.NewQuery(q.Text, q.Needle, &s.query)
	for i := range x.lists[q.List] {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		x.lists[q.List][i].find(v, query, s)
		found(uint32(i)*readmodel.BlockLen, &s.sure, &s.maybe)
	}
	return nil
}

// find sets s.sure to the slots of the part whose rows match q in v, and s.maybe to other slots
// whose rows may.
func (p *part) find(v *readmodel.View, q *textindex.Query, s *scratch) {
	sure, maybe := &s.sure, &s.maybe
	// An older view may have other texts than the block. If the block cannot be read, the search
	// scans.
	if p.built > v.Version() || p.block.Find(q, sure, maybe) != nil {
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
