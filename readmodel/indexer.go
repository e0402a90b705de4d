package readmodel

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"example.org/registry/readmodel/gramindex"
)

// Indexer feeds a text index from a model's views. Nobody waits for it: searches are exact without
// it, and faster as far as it has come.
type Indexer struct {
	// Dir is where the index is kept while the process lives. What is there is removed.
	Dir string
	// Logger gets one line when the index is complete and one for each failure. Nil: none.
	Logger *slog.Logger
	// Batch is how many entries are indexed at a time. Zero: 1000.
	Batch int
	// Pause is how long to wait between batches once the index is complete, so that a busy stream
	// makes few segments rather than many. Zero: 100 ms.
	Pause time.Duration

	trouble atomic.Pointer[string]
}

// Trouble is why there is no index, in a sentence; "" when there is one or it is being built. Any
// goroutine may call it.
func (x *Indexer) Trouble() string {
	if t := x.trouble.Load(); t != nil {
		return *t
	}
	return ""
}

// afterFailure is how long to wait before the index is begun anew.
const afterFailure = 30 * time.Second

// Run keeps an index of m until ctx ends. When the index fails it is wiped and, after a while,
// begun anew. One Indexer runs for a model at a time.
func (x *Indexer) Run(ctx context.Context, m *Model) {
	for ctx.Err() == nil {
		err := x.build(ctx, m)
		m.accelerator.replace(nil)
		if ctx.Err() != nil {
			return
		}
		sentence := "The text index failed and is begun anew: " + err.Error() + "."
		x.trouble.Store(&sentence)
		x.logger().Error("text index failed; searches look at every entry until it is built again", "error", err)
		wait(ctx, afterFailure)
	}
}

// build makes an index from nothing and follows the model with it. It returns ctx's error or what
// went wrong.
func (x *Indexer) build(ctx context.Context, m *Model) (err error) {
	ix, err := gramindex.Create(x.Dir)
	if err != nil {
		return err
	}
	defer func() {
		m.accelerator.replace(nil)
		if cerr := ix.Close(); err == nil {
			err = cerr
		}
	}()
	f := &feed{index: ix, model: m, batch: x.Batch}
	if f.batch <= 0 {
		f.batch = 1000
	}
	start := time.Now()
	if err := f.follow(ctx, m.View()); err != nil {
		return err
	}
	x.trouble.Store(nil)
	x.logger().Info("text index complete", "entries", f.written, "checkpoint", f.done, "took", time.Since(start).Round(time.Millisecond).String())
	for {
		v, err := m.Await(ctx, f.done+1)
		if err != nil {
			return err
		}
		if err := f.follow(ctx, v); err != nil {
			return err
		}
		wait(ctx, x.pause())
	}
}

func (x *Indexer) pause() time.Duration {
	if x.Pause > 0 {
		return x.Pause
	}
	return 100 * time.Millisecond
}

func (x *Indexer) logger() *slog.Logger {
	if x.Logger != nil {
		return x.Logger
	}
	return slog.New(slog.DiscardHandler)
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// feed brings one index up to view after view.
type feed struct {
	index   *gramindex.Index
	model   *Model
	batch   int
	done    uint64 // the index covers everything up to here
	begun   bool
	written int
	took    time.Duration // by the last batch
	pending []gramindex.Document
}

// follow indexes what has changed since the last view and offers the result to searches. In between
// the index holds texts of v that are newer than done: nobody sees them before all of v is in.
func (f *feed) follow(ctx context.Context, v *View) error {
	before := f.written
	if err := f.changes(ctx, v); err != nil {
		return err
	}
	if err := f.flush(); err != nil {
		return err
	}
	f.done = v.sequence
	a := f.model.accelerator
	if x := a.index.Load(); x != nil && f.written == before {
		x.sequence.Store(v.sequence)
		return nil
	}
	s, err := f.index.Snapshot()
	if err != nil {
		return err
	}
	f.begun = true
	a.replace(newIndexed(s, v.sequence))
	return nil
}

// changes writes the rows of v that the index does not have as they are.
func (f *feed) changes(ctx context.Context, v *View) error {
	changes, ok := v.changes.since(f.done)
	if !ok || !f.begun {
		return f.rows(ctx, v)
	}
	for _, c := range changes {
		if err := f.add(ctx, v.lists[c.list()].rows.get(c.slot()), c.ref); err != nil {
			return err
		}
	}
	return nil
}

// rows is changes by a look at every row.
func (f *feed) rows(ctx context.Context, v *View) error {
	for list, l := range v.lists {
		for n, page := range l.rows.pages {
			for i, r := range page.values {
				if r == nil || f.begun && r.sequence <= f.done {
					continue
				}
				if err := f.add(ctx, r, uint32(list)<<listShift|uint32(n*pageLen+i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// add takes a row that was set; the document of one that is gone may stay, since an empty slot
// matches nothing.
func (f *feed) add(ctx context.Context, r *Row, ref uint32) error {
	if r == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.pending = append(f.pending, gramindex.Document{Number: ref, All: r.text(), Names: r.nameAndChat()})
	if len(f.pending) < f.batch {
		return nil
	}
	err := f.flush()
	f.rest(ctx)
	return err
}

func (f *feed) flush() error {
	if len(f.pending) == 0 {
		return nil
	}
	f.written += len(f.pending)
	start := time.Now()
	err := f.index.Write(f.pending)
	f.took = time.Since(start)
	f.pending = f.pending[:0]
	return err
}

// rest leaves readers their processors after a full batch: a batch keeps about one busy, and the
// index is to take a quarter of them while it is behind.
func (f *feed) rest(ctx context.Context) {
	if idle := 4 - runtime.GOMAXPROCS(0); idle > 0 {
		wait(ctx, f.took*time.Duration(idle)/time.Duration(4-idle))
	}
}

// IndexSequence is the sequence up to which the text index covers the model: that of v while there
// is nothing with text behind it, 0 while there is no index. Any goroutine may call it.
func (m *Model) IndexSequence() uint64 {
	if x := m.accelerator.index.Load(); x != nil {
		return x.sequence.Load()
	}
	return 0
}
