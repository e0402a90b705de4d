package gramindex

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"
)

// Snapshot is the index as it was at one moment. Any goroutine may use it until Release.
type Snapshot struct {
	reader   *scorch.IndexSnapshot
	segments []part
}

// part is one segment of a snapshot: immutable but for what has been deleted since.
type part struct {
	segment segment.Segment
	deleted *roaring.Bitmap
	table   *table
}

// table is the numbers of a segment's documents, in the segment's own order.
type table struct{ numbers []uint32 }

// errKind says that the library is not the one that this was written for.
var errKind = errors.New("text index: unexpected kind of reader")

// Snapshot is the index as it is now.
func (x *Index) Snapshot() (s *Snapshot, err error) {
	defer recovered(&err)
	r, err := x.scorch.Reader()
	if err != nil {
		return nil, fmt.Errorf("text index: %w", err)
	}
	reader, ok := r.(*scorch.IndexSnapshot)
	if !ok {
		return nil, errors.Join(errKind, r.Close())
	}
	s = &Snapshot{reader: reader}
	tables := map[uint64]*table{}
	for _, seg := range reader.Segments() {
		t := x.tables[seg.Id()]
		if t == nil {
			if t, err = newTable(seg.Segment()); err != nil {
				return nil, errors.Join(err, reader.Close())
			}
		}
		tables[seg.Id()] = t
		s.segments = append(s.segments, part{seg.Segment(), seg.Deleted(), t})
	}
	x.tables = tables
	return s, nil
}

func newTable(s segment.Segment) (*table, error) {
	t := &table{make([]uint32, s.Count())}
	for i := range t.numbers {
		id, err := s.DocID(uint64(i))
		if err != nil {
			return nil, fmt.Errorf("text index: %w", err)
		}
		if t.numbers[i], err = numberOf(id); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Release gives the snapshot back. It may not be used any more.
func (s *Snapshot) Release() error { return s.reader.Close() }

// Documents is how many there are.
func (s *Snapshot) Documents() (n uint64) {
	for _, p := range s.segments {
		n += uint64(len(p.table.numbers))
		if p.deleted != nil {
			n -= p.deleted.GetCardinality()
		}
	}
	return n
}

// Find calls f with the numbers of the documents that hold every gram of needle in the text, in no
// order, segment by segment, until f returns false. numbers is only valid during the call.
func (s *Snapshot) Find(text Text, needle string, f func(numbers []uint32) bool) (err error) {
	defer recovered(&err)
	grams := needleGrams(needle)
	var numbers []uint32
	for i := range s.segments {
		p := &s.segments[i]
		hits, err := p.all(text, grams)
		if err != nil {
			return err
		}
		if hits == nil || hits.IsEmpty() {
			continue
		}
		numbers = p.table.of(hits, numbers[:0])
		if !f(numbers) {
			return nil
		}
	}
	return nil
}

func (t *table) of(hits *roaring.Bitmap, dst []uint32) []uint32 {
	hits.Iterate(func(doc uint32) bool {
		dst = append(dst, t.numbers[doc])
		return true
	})
	return dst
}

// all is the segment's documents that hold all grams; nil when there is none.
func (p *part) all(text Text, grams []string) (*roaring.Bitmap, error) {
	dictionary, err := p.segment.Dictionary(string(text))
	if err != nil {
		return nil, fmt.Errorf("text index: %w", err)
	}
	lists := make([]*roaring.Bitmap, 0, len(grams)+1)
	for _, gram := range grams {
		list, err := postings(dictionary, gram)
		if err != nil || list == nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	slices.SortFunc(lists, func(a, b *roaring.Bitmap) int { return cmp.Compare(a.GetCardinality(), b.GetCardinality()) })
	hits := roaring.FastAnd(lists...)
	if p.deleted != nil {
		hits.AndNot(p.deleted)
	}
	return hits, nil
}

// postings is the list of one gram, nil when no document holds it. It belongs to the segment.
func postings(d segment.TermDictionary, gram string) (*roaring.Bitmap, error) {
	list, err := d.PostingsList([]byte(gram), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("text index: %w", err)
	}
	it, ok := list.Iterator(false, false, false, nil).(segment.OptimizablePostingsIterator)
	if !ok {
		return nil, errKind
	}
	if doc, one := it.DocNum1Hit(); one {
		return roaring.BitmapOf(uint32(doc)), nil
	}
	if b := it.ActualBitmap(); b != nil && !b.IsEmpty() {
		return b, nil
	}
	return nil, nil
}
