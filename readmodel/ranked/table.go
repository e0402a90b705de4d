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
	lengths []packed           // zero for such documents
	sum     lengths
}

const noRow = ^readmodel.RowRef(0)

// packed is a document's lengths: eight bits for the name, eight for the id, the rest for the
// reason.
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

// readTable reads every document of a segment to find its row. It calls unmatched with the ids of
// documents without a current row in v, and stops if that returns an error.
func readTable(ctx context.Context, w *indexing.Work, seg *scorch.SegmentSnapshot, v *readmodel.View, unmatched func(id string) error) (*table, error) {
	n := seg.Segment().Count()
	t := &table{refs: make([]readmodel.RowRef, n), lengths: make([]packed, n)}
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
		t.lengths[doc] = pack(s.lengths)
		t.sum.add(t.lengths[doc].unpack())
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
