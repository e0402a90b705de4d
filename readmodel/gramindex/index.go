package gramindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
)

// Index is an index under construction, which it is for as long as it lives. One goroutine owns it;
// the snapshots it takes may be used by any.
type Index struct {
	scorch index.Index
	queue  *index.AnalysisQueue
	tables map[uint64]*table // by segment id; those of the last snapshot
}

// Create makes an empty index in dir, which is removed first: an index is a cache, and one that
// another process left is not worth the risk that a flipped bit in it hides somebody.
func Create(dir string) (*Index, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("text index: %w", err)
	}
	queue := index.NewAnalysisQueue(1)
	s, err := scorch.NewScorch("scorch", settings(dir), queue)
	if err == nil {
		err = s.Open()
	}
	if err != nil {
		queue.Close()
		return nil, fmt.Errorf("text index: %w", err)
	}
	return &Index{scorch: s, queue: queue}, nil
}

func settings(dir string) map[string]any {
	return map[string]any{
		"path":               dir,
		"bolt_timeout":       "5s",
		"unsafe_batch":       true, // a batch is visible when Write returns; durable it need not be
		"numSnapshotsToKeep": 1,
		"scorchPersisterOptions": map[string]any{
			"PersisterNapTimeMSec":      100,
			"PersisterNapUnderNumFiles": 500,
		},
		"scorchMergePlanOptions": map[string]any{
			"MaxSegmentsPerTier":   5,
			"SegmentsPerMergeTask": 5,
			"ReclaimDeletesWeight": 2.5,
		},
	}
}

// Write indexes documents, in place of those of the same numbers, as one batch.
func (x *Index) Write(docs []Document) (err error) {
	defer recovered(&err)
	batch := index.NewBatch()
	for i := range docs {
		id := idOf(docs[i].Number)
		batch.IndexOps[id] = docs[i].bleve(id)
	}
	if err := x.scorch.Batch(batch); err != nil {
		return fmt.Errorf("text index: %w", err)
	}
	return nil
}

// Close ends the index. Snapshots must have been released.
func (x *Index) Close() error {
	err := x.scorch.Close()
	x.queue.Close()
	return err
}

func idOf(number uint32) string { return string(binary.BigEndian.AppendUint32(nil, number)) }

var errID = errors.New("text index: a document's id is not a number")

func numberOf(id []byte) (uint32, error) {
	if len(id) != 4 {
		return 0, errID
	}
	return binary.BigEndian.Uint32(id), nil
}

// recovered turns a panic out of the library into an error: it has no other means against damage.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("text index: %v", v)
	}
}
