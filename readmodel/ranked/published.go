package ranked

import (
	"errors"
	"fmt"
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

// table tells which row each document of a segment was made of. It does not change, as segments do not.
type table struct {
	refs    []readmodel.RowRef // noRow: deleted when the table was made
	lengths []packed           // zero likewise
	sum     lengths
}

const noRow = ^readmodel.RowRef(0)

// packed is a document's lengths: eight bits of name, eight of id, the rest of the reason.
type packed uint32

func pack(l lengths) packed {
	return packed(min(l[inName], 255) | min(l[inID], 255)<<8 | min(l[inReason], 1<<16-1)<<16)
}

func (p packed) unpack() lengths {
	return lengths{inName: uint64(p & 255), inID: uint64(p >> 8 & 255), inReason: uint64(p >> 16)}
}

// of returns the length of one field.
func (p packed) of(field int) uint32 {
	switch field {
	case inName:
		return uint32(p & 255)
	case inID:
		return uint32(p >> 8 & 255)
	default:
		return uint32(p >> 16)
	}
}

// readTable reads what the documents of a segment were made of. strange gets those that are not of a row of v as it is
// now, and may end it by an error.
func (f *follower) readTable(seg *scorch.SegmentSnapshot, v *readmodel.View, strange func(id string) error) (*table, error) {
	n := seg.Segment().Count()
	t := &table{refs: make([]readmodel.RowRef, n), lengths: make([]packed, n)}
	deleted := seg.Deleted()
	for doc := range n {
		f.meter.tick()
		t.refs[doc] = noRow
		if deleted != nil && deleted.Contains(uint32(doc)) {
			continue
		}
		id, s, err := readStamp(seg, doc)
		if err != nil {
			return nil, err
		}
		t.lengths[doc] = pack(s.lengths)
		t.sum.add(t.lengths[doc].unpack())
		if r := rowOf(v, id); r != nil && r.Sequence() == s.sequence {
			t.refs[doc] = r.Ref()
		} else if err := strange(id); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func readStamp(seg *scorch.SegmentSnapshot, doc uint64) (id string, s stamp, err error) {
	var stored []byte
	visited := seg.VisitDocument(doc, func(field string, _ byte, value []byte, _ []uint64) bool {
		switch field {
		case "_id":
			id = string(value)
		case storedField:
			stored = append(stored, value...)
		}
		return true
	})
	if visited != nil {
		return "", s, fmt.Errorf("a document cannot be read: %w", visited)
	}
	s, err = decodeStamp(stored)
	return id, s, err
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
	for _, seg := range snapshot.Segments() {
		t, err := f.readTable(seg, v, func(id string) error {
			if rowOf(v, id) == nil {
				w.gone[id] = struct{}{}
			} // else there is another document of it to come, or there is one
			return nil
		})
		if err != nil {
			return work{}, err
		}
		for _, ref := range t.refs {
			if ref != noRow && !have[ref.List()].CheckedAdd(ref.Slot()) {
				return work{}, errors.New("it has an entry twice")
			}
		}
		f.tables[seg.Id()] = t
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
			t, err = f.readTable(seg, f.view, func(string) error { return errors.New("it has a document of no entry") })
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
