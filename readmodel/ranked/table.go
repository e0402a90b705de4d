package ranked

import (
	"context"
	"fmt"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/indexing"
)

// table has the row of each document of a segment. Like the segment, it does not change.
type table struct {
	refs    []readmodel.RowRef // noRow if the document was deleted before the table was made
	lengths []lengths          // zero for such documents
	sum     lengths
}

const noRow = ^readmodel.RowRef(0)

// readTable reads every document of a segment to find its row. It calls unmatched with the ids of
// documents without a current row in v, and stops if that returns an error.
func readTable(ctx context.Context, w *indexing.Work, seg *scorch.SegmentSnapshot, v *readmodel.View, unmatched func(id string) error) (*table, error) {
	n := seg.Segment().Count()
	t := &table{refs: make([]readmodel.RowRef, n), lengths: make([]lengths, n)}
	deleted := seg.Deleted()
	for doc := range n {
		t.refs[doc] = noRow
		if deleted != nil && deleted.Contains(uint32(doc)) {
			continue
		}
		w.Tick(ctx)
		id, s, err := readStamp(seg, doc)
		if err != nil {
			return nil, err
		}
		t.lengths[doc] = s.lengths
		t.sum.add(s.lengths)
		if r := rowOf(v, id); r != nil && r.Content() == s.content {
			t.refs[doc] = r.Ref()
		} else if err := unmatched(id); err != nil {
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
