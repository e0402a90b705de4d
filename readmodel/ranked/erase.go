package ranked

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	segment "github.com/blevesearch/scorch_segment_api/v2"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/indexing"
)

const (
	// eraseAfter is the age at which a segment with deleted documents is rewritten. Otherwise bleve
	// keeps their words until it merges the segment, which may be never.
	eraseAfter = 24 * time.Hour
	// eraseLooks is how often in that time the builder checks for such segments.
	eraseLooks = 24
)

// overdue returns the rows of the live documents in segments that have deleted ones and are older
// than the engine allows. Rewriting these rows leaves such a segment without documents, and bleve
// removes its file at its next write.
func (b *builder) overdue(ctx context.Context, w *indexing.Work) ([]*readmodel.Row, error) {
	after := cmp.Or(b.engine.EraseAfter, eraseAfter)
	if time.Since(b.looked) < after/eraseLooks {
		return nil, nil
	}
	b.looked = time.Now()
	snapshot, err := b.store.snapshot()
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	var rows []*readmodel.Row
	inUse := 0
	for _, seg := range snapshot.Segments() {
		file, ok := seg.Segment().(segment.PersistedSegment)
		if ok {
			inUse++
		}
		deleted := seg.Deleted()
		if !ok || deleted == nil || deleted.IsEmpty() {
			continue
		}
		info, err := os.Stat(file.Path())
		if errors.Is(err, fs.ErrNotExist) {
			continue // merged since
		} else if err != nil {
			return nil, err
		}
		if time.Since(info.ModTime()) < after {
			continue
		}
		t := b.tables[seg.Id()]
		if t == nil { // merged since the last publication
			if t, err = readTable(ctx, w, seg, b.view, func(string) error { return errUnknown }); err != nil {
				return nil, err
			}
		}
		for doc, ref := range t.refs {
			if row := b.view.ShownAt(ref); ref != noRow && !deleted.Contains(uint32(doc)) && row != nil {
				rows = append(rows, row)
			}
		}
	}
	if len(rows) == 0 {
		return nil, b.removeUnused(inUse)
	}
	return rows, nil
}

// removeUnused makes bleve write if there are more files than segments in use, since a write
// removes the other files.
func (b *builder) removeUnused(inUse int) error {
	files, err := filepath.Glob(filepath.Join(b.store.dir, "*.zap"))
	if err != nil || len(files) <= inUse || b.store.unpersisted.Load() > 0 {
		return err
	}
	return b.write(nil, nil)
}
