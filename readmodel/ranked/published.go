package ranked

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/indexing"
)

// published is the index as searches see it. It never changes, and stays readable until all
// references are released.
type published struct {
	by       *builder
	users    atomic.Int64
	snapshot *scorch.IndexSnapshot
	parts    []part
	view     *readmodel.View // the view that it covers
	sequence uint64
	docs     int
	lengths  lengths // sum over all documents
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
	lengths lengths // sum over the documents that are not deleted
}

var errUnknown = errors.New("it holds a document whose entry does not exist")

// show publishes the index.
func (b *builder) show(ctx context.Context, w *indexing.Work) error {
	snapshot, err := b.store.snapshot()
	if err != nil {
		return err
	}
	p := &published{by: b, snapshot: snapshot, view: b.view, sequence: b.state.Sequence}
	p.users.Store(1)
	tables := map[uint64]*table{}
	for _, seg := range snapshot.Segments() {
		t := b.tables[seg.Id()]
		if t == nil {
			t, err = readTable(ctx, w, seg, b.view, func(string) error { return errUnknown })
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
	b.tables = tables
	b.engine.publish(p)
	return nil
}

// newPart counts the documents of a segment that are not deleted.
func newPart(seg *scorch.SegmentSnapshot, t *table) part {
	p := part{SegmentSnapshot: seg, table: t, docs: int(seg.Count()), lengths: t.sum}
	if deleted := seg.Deleted(); deleted != nil {
		deleted.Iterate(func(doc uint32) bool {
			p.lengths.sub(t.lengths[doc])
			return true
		})
	}
	return p
}
