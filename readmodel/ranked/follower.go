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

// follower is one open index that follows a model. One goroutine owns it.
type follower struct {
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
func (f *follower) open(ctx context.Context, w *indexing.Work) (err error) {
	if err := f.engine.load(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if f.store, err = openStore(filesOf(f.engine.Dir), f.engine.keeper.Pacer, f.engine.tuning); err != nil {
		return err
	}
	if err := f.restore(); err != nil {
		return err
	}
	f.work, err = f.compare(ctx, w, f.model.View())
	return err
}

// Close implements indexing.Index. It closes the files after the last batches have reached the
// disk.
func (f *follower) Close() {
	f.engine.unpublish(f)
	if f.store != nil {
		f.store.flushAndClose()
	}
}

// restore reads the index's stored state and compares it with the expected one.
func (f *follower) restore() error {
	snapshot, err := f.store.snapshot()
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
	want := newState(f.state.Identity)
	want.Complete, want.Sequence, want.Digest = st.Complete, st.Sequence, st.Digest
	v := f.model.View()
	switch {
	case st != want:
		return &indexing.StaleError{Reason: "it is of another stream, data set or version"}
	case st.Sequence > v.Sequence():
		return &indexing.StaleError{Reason: fmt.Sprintf("it is at sequence %d, and the read model at %d", st.Sequence, v.Sequence())}
	case st.Complete && st.Sequence == v.Sequence() && st.Digest != v.Digest().String():
		return &indexing.StaleError{Reason: "it is of another content"}
	}
	f.state = st
	return nil
}

// compare finds the difference between the index and v by reading every document and every row.
func (f *follower) compare(ctx context.Context, w *indexing.Work, v *readmodel.View) (lacks work, err error) {
	snapshot, err := f.store.snapshot()
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
		f.tables[seg.Id()] = t
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
func (f *follower) changes(ctx context.Context, w *indexing.Work, v *readmodel.View) (work, error) {
	refs, ok := v.ChangedSince(f.view.Sequence())
	if !ok {
		return f.compare(ctx, w, v)
	}
	lacks := work{view: v, gone: map[string]struct{}{}}
	seen := make(map[readmodel.RowRef]bool, len(refs))
	for _, ref := range refs {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		was, is := f.view.ShownAt(ref), v.ShownAt(ref)
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
func (f *follower) Follow(ctx context.Context, w *indexing.Work, v *readmodel.View) (state indexing.State, err error) {
	if err := f.health(); err != nil {
		return indexing.Working, err
	}
	if f.work.view == nil {
		if f.work, err = f.changes(ctx, w, v); err != nil {
			return indexing.Working, err
		}
	}
	if !f.work.empty() || !f.state.Complete {
		if err := f.batch(ctx, w); err != nil {
			return indexing.Working, err
		}
		if !f.work.empty() {
			return indexing.Working, nil
		}
	}
	if f.view != f.work.view {
		f.view, f.state.Sequence = f.work.view, f.work.view.Sequence()
		if err := f.show(ctx, w); err != nil {
			return indexing.Working, err
		}
	}
	f.work = work{}
	if f.view != v {
		return indexing.Working, nil
	}
	if err := f.tidy(); err != nil {
		return indexing.Complete, err
	}
	rows, err := f.overdue(ctx, w)
	if len(rows) > 0 {
		f.work, f.view = work{view: v, gone: map[string]struct{}{}, rows: rows}, nil // publishes it again
		return indexing.Working, err
	}
	return indexing.Complete, err
}

// health returns the error of bleve's goroutines, if any.
func (f *follower) health() error {
	select {
	case err := <-f.store.failed:
		return err
	default:
	}
	if began := f.store.merging.Load(); began != nil && time.Since(*began) > mergesWithin*f.engine.hangsAfter() {
		return errMergeHangs
	}
	return nil
}

// batch makes documents of some of the rows, and writes them.
func (f *follower) batch(ctx context.Context, w *indexing.Work) error {
	rows := f.work.rows[:min(batchRows, len(f.work.rows))]
	f.work.rows = f.work.rows[len(rows):]
	if time.Since(f.learned) > cmp.Or(f.engine.EraseAfter, eraseAfter) { // words of entries that are gone
		f.analyzer, f.learned = f.engine.stemmer.Load().Analyzer(), time.Now()
	}
	documents := make([]*document, len(rows))
	for i, r := range rows {
		d, err := newDocument(f.analyzer, r, func() { w.Tick(ctx) })
		if err != nil {
			return err
		}
		documents[i] = d
		w.Tick(ctx)
	}
	if len(f.work.rows) == 0 {
		f.state.Complete, f.state.Sequence, f.state.Digest = true, f.work.view.Sequence(), f.work.view.Digest().String()
	}
	if err := f.write(documents, slices.Collect(maps.Keys(f.work.gone))); err != nil {
		return err
	}
	clear(f.work.gone)
	w.Tick(ctx)
	defer w.Waited()
	return f.store.keepUp(ctx)
}

func (f *follower) write(documents []*document, gone []string) error {
	f.wrote = true
	return f.store.write(documents, gone, &f.state)
}

// tidy writes an empty batch if that helps: the first batch on the disk ends the opening, and bleve
// removes the files of merged segments when it next writes.
func (f *follower) tidy() error {
	if f.wrote && !f.store.merged.Load() {
		return nil
	}
	return f.write(nil, nil)
}
