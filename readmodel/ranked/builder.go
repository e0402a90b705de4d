package ranked

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/indexing"
	"example.org/registry/readmodel/terms"
)

// builder is one open index that follows a model. One goroutine owns it.
type builder struct {
	engine *Engine
	model  *readmodel.Model
	store  *store // nil if it is not open

	analyzer *terms.Analyzer
	learned  time.Time // when the analyzer began to remember words

	state  state
	view   *readmodel.View // the view that the index covers; nil until it is complete
	work   work            // in progress
	tables map[uint64]*table
	wrote  bool      // whether a batch was written since the opening
	looked time.Time // time of the last check for overdue segments
}

const (
	// batchRows is the number of rows in a batch while many are to be indexed. Larger batches need
	// fewer merges, and more memory.
	batchRows = 8192
	// mergesWithin is how many times longer than a step a merge may take.
	mergesWithin = 10
)

var errMergeHangs = errors.New("a merge takes too long")

// work is the difference between the index and a view: documents to remove, and rows to add.
type work struct {
	view *readmodel.View // nil if there is no work
	gone map[string]struct{}
	rows []*readmodel.Row
}

func (w *work) empty() bool { return len(w.rows) == 0 && len(w.gone) == 0 }

// open opens the index, and finds its difference from the model.
func (b *builder) open(ctx context.Context, w *indexing.Work) (err error) {
	if err := b.engine.load(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	if b.store, err = openStore(filesOf(b.engine.Dir), b.engine.runner.Pacer, b.engine.tuning); err != nil {
		return err
	}
	if err := b.restore(); err != nil {
		return err
	}
	b.work, err = b.compare(ctx, w, b.model.View())
	return err
}

// Close implements indexing.Index. It closes the files after the last batches have reached the
// disk.
func (b *builder) Close() {
	b.engine.unpublish(b)
	if b.store != nil {
		b.store.flushAndClose()
	}
}

// restore reads the index's stored state and compares it with the expected one.
func (b *builder) restore() error {
	snapshot, err := b.store.snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	raw, err := snapshot.GetInternal([]byte(stateKey))
	if err != nil {
		return fmt.Errorf("its metadata: %w", err)
	}
	if raw == nil && len(snapshot.Segments()) == 0 {
		return nil // a new index
	}
	var st state
	if err := json.Unmarshal(raw, &st); err != nil {
		return fmt.Errorf("its metadata: %w", err)
	}
	want := newState(b.state.Identity)
	want.Complete, want.Sequence, want.Digest = st.Complete, st.Sequence, st.Digest
	v := b.model.View()
	switch {
	case st != want:
		return &indexing.StaleError{Reason: "it is of another stream, data set or version"}
	case st.Sequence > v.Sequence():
		return &indexing.StaleError{Reason: fmt.Sprintf("it is at sequence %d, and the read model at %d", st.Sequence, v.Sequence())}
	case st.Complete && st.Sequence == v.Sequence() && st.Digest != v.Digest().String():
		return &indexing.StaleError{Reason: "it is of another content"}
	}
	b.state = st
	return nil
}

// compare finds the difference between the index and v by reading every document and every row.
func (b *builder) compare(ctx context.Context, w *indexing.Work, v *readmodel.View) (lacks work, err error) {
	snapshot, err := b.store.snapshot()
	if err != nil {
		return lacks, err
	}
	defer snapshot.Close()
	lacks = work{view: v, gone: map[string]struct{}{}}
	var have [events.NumLists]roaring.Bitmap
	for _, seg := range snapshot.Segments() {
		t, err := readTable(ctx, w, seg, v, func(id string) error {
			if rowOf(v, id) == nil {
				lacks.gone[id] = struct{}{}
			} // another document of it follows, or has been found
			return nil
		})
		if err != nil {
			return lacks, err
		}
		for _, ref := range t.refs {
			if ref != noRow {
				have[ref.List()].Add(ref.Slot())
			}
		}
		b.tables[seg.Id()] = t
	}
	v.ShownRows(func(r *readmodel.Row) bool {
		if !have[r.Ref().List()].Contains(r.Ref().Slot()) {
			lacks.rows = append(lacks.rows, r)
		}
		return true
	})
	return lacks, nil
}

// changes returns the changes since the view that the index covers.
func (b *builder) changes(ctx context.Context, w *indexing.Work, v *readmodel.View) (work, error) {
	refs, ok := v.ChangedSince(b.view.Version())
	if !ok {
		return b.compare(ctx, w, v)
	}
	lacks := work{view: v, gone: map[string]struct{}{}}
	seen := make(map[readmodel.RowRef]bool, len(refs))
	for _, ref := range refs {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		was, is := b.view.ShownAt(ref), v.ShownAt(ref)
		if was != nil && (is == nil || is.ID() != was.ID()) {
			lacks.gone[documentID(was)] = struct{}{}
		}
		if is != nil {
			lacks.rows = append(lacks.rows, is)
		}
	}
	return lacks, nil
}

// Follow implements indexing.Index. A step is a batch; the last one of a view publishes the index.
func (b *builder) Follow(ctx context.Context, w *indexing.Work, v *readmodel.View) (state indexing.State, err error) {
	if err := b.health(); err != nil {
		return indexing.Working, err
	}
	if b.work.view == nil {
		if b.work, err = b.changes(ctx, w, v); err != nil {
			return indexing.Working, err
		}
	}
	if !b.work.empty() || !b.state.Complete {
		if err := b.batch(ctx, w); err != nil {
			return indexing.Working, err
		}
		if !b.work.empty() {
			return indexing.Working, nil
		}
	}
	if b.view != b.work.view {
		b.view, b.state.Sequence = b.work.view, b.work.view.Sequence()
		if err := b.show(ctx, w); err != nil {
			return indexing.Working, err
		}
	}
	b.work = work{}
	if b.view != v {
		return indexing.Working, nil
	}
	if err := b.tidy(); err != nil {
		return indexing.Complete, err
	}
	rows, err := b.overdue(ctx, w)
	if len(rows) > 0 {
		b.work, b.view = work{view: v, gone: map[string]struct{}{}, rows: rows}, nil // publishes it again
		return indexing.Working, err
	}
	return indexing.Complete, err
}

// health returns the error of bleve's goroutines, if any.
func (b *builder) health() error {
	select {
	case err := <-b.store.failed:
		return err
	default:
	}
	if began := b.store.merging.Load(); began != nil && time.Since(*began) > mergesWithin*b.engine.hangsAfter() {
		return errMergeHangs
	}
	return nil
}

// batch makes documents of some of the rows, and writes them.
func (b *builder) batch(ctx context.Context, w *indexing.Work) error {
	rows := b.work.rows[:min(batchRows, len(b.work.rows))]
	b.work.rows = b.work.rows[len(rows):]
	if time.Since(b.learned) > cmp.Or(b.engine.EraseAfter, eraseAfter) { // words of entries that are gone
		b.analyzer, b.learned = b.engine.stemmer.Load().Analyzer(), time.Now()
	}
	documents := make([]*document, len(rows))
	for i, r := range rows {
		d, err := newDocument(b.analyzer, r, func() { w.Tick(ctx) })
		if err != nil {
			return err
		}
		documents[i] = d
		w.Tick(ctx)
	}
	if len(b.work.rows) == 0 {
		b.state.Complete, b.state.Sequence, b.state.Digest = true, b.work.view.Sequence(), b.work.view.Digest().String()
	}
	if err := b.write(documents, slices.Collect(maps.Keys(b.work.gone))); err != nil {
		return err
	}
	clear(b.work.gone)
	w.Tick(ctx)
	defer w.Waited()
	return b.store.keepUp(ctx)
}

func (b *builder) write(documents []*document, gone []string) error {
	b.wrote = true
	return b.store.write(documents, gone, &b.state)
}

// tidy writes an empty batch if that helps: the first batch on the disk ends the opening, and bleve
// removes the files of merged segments when it next writes.
func (b *builder) tidy() error {
	if b.wrote && !b.store.merged.Load() {
		return nil
	}
	return b.write(nil, nil)
}
