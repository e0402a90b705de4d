package ranked

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// published is the index as searches see it. It never changes, and stays readable until everybody has released it.
type published struct {
	by       *follower
	users    atomic.Int64
	snapshot *scorch.IndexSnapshot
	parts    []part
	view     *readmodel.View // the state that it has
	sequence uint64
	docs     int
	lengths  lengths // of all documents
}

func (p *published) release() {
	if p != nil && p.users.Add(-1) == 0 {
		_ = p.snapshot.Close() // only counts references
	}
}

// part is a segment of a published index.
type part struct {
	*scorch.SegmentSnapshot
	*table
	docs    int
	lengths lengths // of the documents that are not deleted
}

// restore reads what the index says about itself and compares it with what it should be.
func (f *follower) restore() error {
	snapshot, err := f.store.snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	raw, err := snapshot.GetInternal([]byte(stateKey))
	if err != nil {
		return fmt.Errorf("what it says about itself: %w", err)
	}
	if raw == nil && len(snapshot.Segments()) == 0 {
		if isMarked(currentOf(f.indexer.Dir)) {
			return errors.New("it is empty, and was complete once")
		}
		return nil // a new one
	}
	st, err := decodeState(raw)
	if err != nil {
		return err
	}
	want := newState(f.state.Identity)
	want.Complete, want.Sequence, want.Digest = st.Complete, st.Sequence, st.Digest
	v := f.model.View()
	switch {
	case st != want:
		return &staleError{"it is of another stream, data set or version"}
	case st.Sequence > v.Sequence():
		return &staleError{fmt.Sprintf("it is at sequence %d, and the read model at %d", st.Sequence, v.Sequence())}
	case st.Complete && st.Sequence == v.Sequence() && st.Digest != v.Digest().String():
		return &staleError{"it is of another content"}
	}
	f.state = st
	return nil
}

// compare finds out what the index lacks of v by a look at every document and every row. Its error says what an index
// that had come to its sequence would not lack, or would not have.
func (f *follower) compare(v *readmodel.View) (work, error) {
	snapshot, err := f.store.snapshot()
	if err != nil {
		return work{}, err
	}
	defer snapshot.Close()
	w := work{view: v, gone: map[string]struct{}{}}
	var have [events.NumLists]roaring.Bitmap
	lacks := shown(v)
	rows := sync.OnceValue(func() *sequences { return newSequences(v) })
	for _, seg := range snapshot.Segments() {
		t, err := f.readTable(seg, v, rows, func(id string) error {
			if rowOf(v, id) == nil {
				w.gone[id] = struct{}{}
			} // else there is another document of it to come, or there is one
			return nil
		})
		if err != nil {
			return work{}, err
		}
		for _, ref := range t.refs {
			if ref == noRow {
				continue
			}
			if !have[ref.List()].CheckedAdd(ref.Slot()) {
				return work{}, errors.New("it has an entry twice")
			}
			lacks--
		}
		f.tables[seg.Id()] = t
	}
	if lacks == 0 {
		return w, nil // it has each
	}
	v.ShownRows(func(r *readmodel.Row) bool {
		if have[r.Ref().List()].Contains(r.Ref().Slot()) {
			return true
		}
		if f.state.Complete && r.Sequence() <= f.state.Sequence {
			err = errors.New("it lacks entries that it should have")
			return false
		}
		w.rows = append(w.rows, r)
		return true
	})
	return w, err
}

// shown returns how many rows a view shows.
func shown(v *readmodel.View) (n int) {
	for _, l := range events.Lists() {
		n += v.Entries(l)
	}
	return n
}

// show publishes the index as it is now.
func (f *follower) show() error {
	snapshot, err := f.store.snapshot()
	if err != nil {
		return err
	}
	p := &published{by: f, snapshot: snapshot, view: f.view, sequence: f.state.Sequence}
	p.users.Store(1)
	tables := map[uint64]*table{}
	for _, seg := range snapshot.Segments() {
		t := f.tables[seg.Id()]
		if t == nil {
			t, err = f.readTable(seg, f.view, nil, func(string) error { return errors.New("it has a document of no entry") })
			if err != nil {
				p.release()
				return err
			}
		}
		tables[seg.Id()] = t
		one := newPart(seg, t)
		p.parts = append(p.parts, one)
		p.docs += one.docs
		p.lengths.add(one.lengths)
	}
	f.tables = tables
	f.indexer.publish(p)
	return nil
}

// newPart counts the documents of a segment that are not deleted.
func newPart(seg *scorch.SegmentSnapshot, t *table) part {
	p := part{SegmentSnapshot: seg, table: t, docs: int(seg.Count()), lengths: t.sum}
	if deleted := seg.Deleted(); deleted != nil {
		deleted.Iterate(func(doc uint32) bool {
			p.lengths.sub(t.lengths[doc].unpack())
			return true
		})
	}
	return p
}
