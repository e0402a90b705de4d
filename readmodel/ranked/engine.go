package ranked

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"example.org/registry/events/pause"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
	"example.org/registry/readmodel/terms"
)

// Engine maintains the index of one model, and answers from it. Its fields are set before Run. Any
// goroutine may call the other methods.
type Engine struct {
	// Dir is the directory of the index.
	Dir string
	// EraseAfter is the age at which an index with words of deleted documents is rebuilt. Zero means
	// 20 hours, so that the words are gone within a day.
	EraseAfter time.Duration
	// Logger, if not nil, gets a line when the index is complete, and one when it has failed.
	Logger *slog.Logger

	// gather is how long changes gather before they are indexed together, as one segment. Zero means defaultGather.
	gather time.Duration

	stemmer *terms.Stemmer         // set by Run before there is an index
	index   atomic.Pointer[index]  // the index that searches ask; nil while there is none
	problem atomic.Pointer[string] // what Problem returns; nil while there is none
}

const (
	defaultEraseAfter = 20 * time.Hour
	defaultGather     = 400 * time.Millisecond
	// burst is the growth of a model's sequence during gather that shows that the model is being filled.
	burst = 1000
	// maxGathers is how often awaitEndOfBurst waits at most: a minute in all.
	maxGathers = 150
	// pollEvery is the longest time between two looks at the model and at the age of the index.
	pollEvery = time.Second
	// retryAfter is how long an engine waits after a failure.
	retryAfter = 5 * time.Second
)

// Run maintains an index of m until ctx ends. An Engine runs once. A directory may have one running Engine at a time.
func (e *Engine) Run(ctx context.Context, m *readmodel.Model) {
	for ctx.Err() == nil {
		err := fault.Catch(func() error { return e.runOnce(ctx, m) })
		if ctx.Err() != nil {
			return
		}

		if errors.Is(err, errStale) {
			e.logger().Info("rebuilding the index of ranked search", "reason", err)
		} else {
			e.problem.Store(new(fmt.Sprintf("The index of ranked search has failed and is being rebuilt: %s.", err)))
			e.logger().Error("the index of ranked search has failed; rebuilding it", "error", err)
			pause.For(ctx, retryAfter)
		}
		if err := os.RemoveAll(e.indexDir()); err != nil {
			e.logger().Error("cannot remove the index of ranked search", "error", err)
		}
	}
}

// runOnce opens the index and follows the model until ctx ends or a step fails. If ctx has ended, it returns nil.
func (e *Engine) runOnce(ctx context.Context, m *readmodel.Model) (err error) {
	if e.stemmer == nil {
		e.stemmer = terms.New()
	}
	if err := e.markOpen(); err != nil {
		return err
	}

	x, err := openIndex(e.indexDir())
	if err != nil {
		return err
	}

	// Close the index at the end. After an error the file of markOpen stays, so the next run makes a new index.
	defer func() {
		e.index.Store(nil)
		if x != nil {
			err = errors.Join(err, x.Close())
		}
		if err == nil {
			err = os.Remove(e.markFile())
		}
	}()

	for ctx.Err() == nil {
		v := m.View()
		if v.Epoch() != "" { // else the stream is being read again
			x, err = e.updateIndex(ctx, v, x)
			if err != nil && ctx.Err() == nil {
				return err
			}
		}

		awaitChange(ctx, m, v)
		e.awaitEndOfBurst(ctx, m)
	}
	return nil
}

// markOpen makes the file that exists while the index is open. If the last process died, its file still exists. Then
// markOpen removes the index, since bleve may fault on a damaged index in a goroutine where no Catch can help.
func (e *Engine) markOpen() error {
	if _, err := os.Stat(e.markFile()); err == nil {
		if err := os.RemoveAll(e.indexDir()); err != nil {
			return err
		}
	}

	if err := os.MkdirAll(e.indexDir(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(e.markFile(), nil, 0o600)
}

// updateIndex adds the changes up to v to x, or to a new index if x is nil. It returns the index to go on with.
func (e *Engine) updateIndex(ctx context.Context, v *readmodel.View, x *index) (_ *index, err error) {
	began := time.Now()
	if x == nil {
		if x, err = createIndex(e.indexDir(), v.Epoch()); err != nil {
			return nil, err
		}
	}

	if err := x.followFeed(ctx, e.stemmer.Analyzer(), v); err != nil {
		return x, err
	}

	// Let searches ask the index.
	if e.index.Swap(x) == nil {
		e.problem.Store(nil)
		e.logger().Info("the index of ranked search is complete", "sequence", x.since.Load(), "took", time.Since(began).Round(time.Millisecond).String())
	}

	// bleve keeps the words of deleted documents, so make the index anew when it is old enough.
	if x.hasDeleted && time.Since(x.made) >= cmp.Or(e.EraseAfter, defaultEraseAfter) {
		return e.replaceIndex(ctx, v, x)
	}
	return x, nil
}

// replaceIndex makes an index beside x, without the words of deleted documents, and then removes x. It returns the
// index to go on with.
func (e *Engine) replaceIndex(ctx context.Context, v *readmodel.View, x *index) (*index, error) {
	fresh, err := createIndex(e.indexDir(), v.Epoch())
	if err != nil {
		return x, err
	}
	if err := fresh.followFeed(ctx, e.stemmer.Analyzer(), v); err != nil {
		return x, errors.Join(err, fresh.Close())
	}

	e.index.Store(fresh)
	return fresh, errors.Join(x.Close(), os.RemoveAll(x.dir))
}

// awaitChange waits for a view after v, but at most for pollEvery.
func awaitChange(ctx context.Context, m *readmodel.Model, v *readmodel.View) {
	ctx, cancel := context.WithTimeout(ctx, pollEvery)
	defer cancel()
	_, _ = m.Await(ctx, v.Sequence()+1) // an error only says that ctx has ended
}

// awaitEndOfBurst lets changes gather, and goes on waiting while very many arrive: the model is being filled, and
// indexing at the same time would slow that down.
func (e *Engine) awaitEndOfBurst(ctx context.Context, m *readmodel.Model) {
	for range maxGathers {
		before := m.View().Sequence()
		pause.For(ctx, cmp.Or(e.gather, defaultGather))
		if ctx.Err() != nil || m.View().Sequence() < before+burst {
			return
		}
	}
}

// indexDir returns the directory of the indexes. It can be removed, unlike Dir, which may be a mounted disk.
func (e *Engine) indexDir() string { return filepath.Join(e.Dir, "current") }

// markFile returns the name of the file that exists while the index is open.
func (e *Engine) markFile() string { return filepath.Join(e.Dir, "open") }

// Sequence returns the sequence that the index covers, or 0 while there is no index.
func (e *Engine) Sequence() uint64 {
	if x := e.index.Load(); x != nil {
		return x.since.Load()
	}
	return 0
}

// Problem returns a sentence that describes why there is no index, or "".
func (e *Engine) Problem() string {
	if p := e.problem.Load(); p != nil {
		return *p
	}
	return ""
}

// logger returns Logger, or a logger that discards everything.
func (e *Engine) logger() *slog.Logger { return cmp.Or(e.Logger, slog.New(slog.DiscardHandler)) }
