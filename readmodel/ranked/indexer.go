package ranked

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/terms"
)

// Indexer keeps the index of one model, and answers from it. Nobody waits for it. Its fields are set before Run; any
// goroutine may call the other methods.
type Indexer struct {
	// Dir is where the index is kept and, for a while, the one that it replaces.
	Dir string
	// Logger gets a line for each time the index is ready or made anew. Nil: none.
	Logger *slog.Logger
	// Busy reports whether somebody else wants the processors: then the index takes a quarter of them at most, and a thirty-second while the
	// rest of the process takes more than that itself. Nil: always.
	Busy func() bool
	// Filling reports whether the model is being filled, so that what fills it wants the processors more than readers do: then the index
	// takes a thirty-second of them. Nil: never; many changes a second say the same.
	Filling func() bool
	// HangsAfter is how long a step may take without progress before the index is given up, and bleve's merges ten times as long.
	// Zero: 30 s.
	HangsAfter time.Duration

	pause time.Duration      // zero: the constant
	retry time.Duration      // zero: retryAfter
	at    func(string) error // called at points where tests fail or hang. Nil: nothing

	mu        sync.Mutex
	follower  *follower  // that may publish
	published *published // nil: no index

	governor  governor
	analyzers sync.Pool // of *terms.Analyzer
	stemmer   atomic.Pointer[terms.Stemmer]
	trouble   atomic.Pointer[string]
	renewed   atomic.Uint64
}

const (
	// retryAfter is how long to wait before a failed index is made anew.
	retryAfter = 5 * time.Second
	// pause is how long changes gather before they are indexed together: each batch is a segment.
	pause = 400 * time.Millisecond
	// batchRows is how many rows make a batch while much is to be indexed: the larger, the fewer merges, and the more memory.
	batchRows = 8192
	// mergesWithin is how many times longer than a step a merge may write nothing.
	mergesWithin = 10
	// leavesWithin bounds the wait for the last batches when the process stops.
	leavesWithin = 2 * time.Second
)

// Run keeps an index of m until ctx ends. An index that does not fit, is damaged or hangs is set aside and made anew.
// m may be searched meanwhile. One Indexer runs once, and for a directory one at a time.
func (x *Indexer) Run(ctx context.Context, m *readmodel.Model, id Identity) {
	x.governor.busy, x.governor.filling, x.governor.used = x.Busy, x.Filling, processorTime
	x.governor.sequence = func() uint64 { return m.View().Sequence() }
	for ctx.Err() == nil {
		err := x.attempt(ctx, m, id)
		if ctx.Err() != nil {
			return
		}
		x.renewed.Add(1)
		x.trouble.Store(new("The index of ranked search is being made anew: " + err.Error() + "."))
		var stale *staleError
		level := slog.LevelError
		if errors.As(err, &stale) {
			level = slog.LevelInfo
		}
		x.logger().Log(ctx, level, "index of ranked search is being made anew", "reason", err.Error())
		if err := setAside(x.Dir); err != nil {
			x.logger().Error("index of ranked search cannot be set aside", "error", err, "retry", retryAfter.String())
		}
		if stale == nil {
			wait(ctx, cmp.Or(x.retry, retryAfter))
		}
	}
}

// staleError means that an index is not of this model: no fault, and no reason to wait.
type staleError struct{ reason string }

func (e *staleError) Error() string { return e.reason }

// A step or a merge has not come back. Its goroutine is left to itself, and publishes nothing any more.
var (
	errHangs      = errors.New("a step takes too long")
	errMergeHangs = errors.New("a merge takes too long")
)

// lasts reports whether what began at a time has lasted longer than d. Nil: it is over.
func lasts(began *atomic.Pointer[time.Time], d time.Duration) bool {
	since := began.Load()
	return since != nil && time.Since(*since) > d
}

// attempt opens the index and follows the model until ctx ends or something is wrong.
func (x *Indexer) attempt(ctx context.Context, m *readmodel.Model, id Identity) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &follower{indexer: x, model: m, state: newState(id), tables: map[uint64]*table{}, stamps: map[uint64]stamps{}, kept: map[string]bool{}, at: x.at}
	if f.at == nil {
		f.at = func(string) error { return nil }
	}
	x.mu.Lock()
	x.follower = f
	x.mu.Unlock()
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx) }()
	defer x.withdraw()
	hangs := cmp.Or(x.HangsAfter, 30*time.Second)
	tick := time.NewTicker(hangs / 10)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			if lasts(&f.step, hangs) {
				return errHangs
			}
			if s := f.open.Load(); s != nil && lasts(&s.merging, mergesWithin*hangs) {
				return errMergeHangs
			}
		}
	}
}

// Sequence returns the last sequence that the index covers; 0 while there is none.
func (x *Indexer) Sequence() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.published == nil {
		return 0
	}
	return x.published.sequence
}

// Trouble returns a sentence that says what is wrong with the index, or "".
func (x *Indexer) Trouble() string {
	if t := x.trouble.Load(); t != nil {
		return *t
	}
	return ""
}

// Renewed returns how often the index has been made anew because something was wrong with it.
func (x *Indexer) Renewed() uint64 { return x.renewed.Load() }

// publish gives searches p in place of what they had, unless p's follower has been given up.
func (x *Indexer) publish(p *published) {
	x.mu.Lock()
	old := p
	if x.follower == p.by {
		old, x.published = x.published, p
	}
	x.mu.Unlock()
	old.release()
}

// withdraw takes away what has been published, and gives the follower up.
func (x *Indexer) withdraw() {
	x.mu.Lock()
	old := x.published
	x.follower, x.published = nil, nil
	x.mu.Unlock()
	old.release()
}

// acquire returns what is published, or nil. The caller releases it.
func (x *Indexer) acquire() *published {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.published != nil {
		x.published.users.Add(1)
	}
	return x.published
}

// analyzer returns an analyzer of the pool, or nil before there is one.
func (x *Indexer) analyzer() *terms.Analyzer {
	if a, ok := x.analyzers.Get().(*terms.Analyzer); ok {
		return a
	}
	return x.stemmer.Load().Analyzer()
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

// follower is one open index that follows a model. One goroutine owns it.
type follower struct {
	indexer *Indexer
	model   *readmodel.Model
	store   *store
	analyst analyst
	meter   meter

	marked bool            // see marker
	view   *readmodel.View // the state that the index has, once it is complete
	state  state
	tables map[uint64]*table // by segment
	stamps map[uint64]stamps // by segment: of those that have no file of stamps yet
	kept   map[string]bool   // the files of stamps that there are; true: it is whole

	at   func(string) error
	open atomic.Pointer[store]
	step atomic.Pointer[time.Time] // when the present step began; nil: none is under way
}

// run follows the model until ctx ends or something is wrong.
func (f *follower) run(ctx context.Context) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	f.begin()
	began := time.Now()
	if err := f.prepare(); err != nil {
		return err
	}
	f.store, err = openStore(currentOf(f.indexer.Dir), &f.indexer.governor, f.at)
	if err != nil {
		return err
	}
	defer f.leave()
	f.open.Store(f.store)
	f.meter = meter{governor: &f.indexer.governor, done: ctx.Done(), beat: f.begin}
	f.analyst.pace = f.meter.tick
	f.meter.begin()
	if err := f.restore(); err != nil {
		return err
	}
	if err := f.findStamps(); err != nil {
		return err
	}
	todo, err := f.compare(f.model.View())
	if err != nil {
		return err
	}
	f.end()
	if err := f.index(ctx, todo); err != nil {
		return err
	}
	f.indexer.trouble.Store(nil)
	f.indexer.logger().Info("index of ranked search complete", "sequence", f.state.Sequence,
		"indexed", len(todo.rows), "took", time.Since(began).Round(time.Millisecond).String())
	if err := os.RemoveAll(asideOf(f.indexer.Dir)); err != nil {
		f.indexer.logger().Warn("the former index of ranked search cannot be removed", "error", err)
	}
	return f.follow(ctx)
}

func (f *follower) begin() { f.step.Store(new(time.Now())) }
func (f *follower) end()   { f.step.Store(nil) }

// prepare loads the stemmer.
func (f *follower) prepare() error {
	x := f.indexer
	if x.stemmer.Load() == nil {
		s, err := terms.New()
		if err != nil {
			return err
		}
		x.stemmer.Store(s)
	}
	f.analyst.analyzer = x.stemmer.Load().Analyzer()
	return nil
}

// leave closes the index after its last batches have reached the disk.
func (f *follower) leave() {
	f.store.hurry()
	deadline := time.After(leavesWithin)
	for f.store.unpersisted.Load() > 0 {
		select {
		case <-f.store.persisted:
			continue
		case <-f.store.failed:
		case <-deadline:
		}
		break
	}
	f.store.close()
}

// follow indexes what changes.
func (f *follower) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		f.begin()
		if err := f.keepStamps(); err != nil {
			return err
		}
		f.end()
		idle, cancel := context.WithTimeout(ctx, time.Second)
		_, _ = f.model.Await(idle, f.view.Sequence()+1) // or the second has passed, and bleve may have merged
		cancel()
		wait(ctx, cmp.Or(f.indexer.pause, pause))
		if ctx.Err() != nil {
			return nil
		}
		select {
		case err := <-f.store.failed:
			return err
		default:
		}
		if !f.marked && f.store.unpersisted.Load() == 0 {
			if err := mark(currentOf(f.indexer.Dir)); err != nil {
				return err
			}
			f.marked = true
		}
		f.begin()
		f.meter.begin()
		v := f.model.View()
		todo, err := f.changes(v)
		if err != nil {
			return err
		}
		if f.store.merged.Load() && len(todo.rows) == 0 && len(todo.gone) == 0 {
			// bleve removes the files of merged segments when it next writes
			if err := f.store.write(nil, nil, &f.state); err != nil {
				return err
			}
		}
		if err := f.index(ctx, todo); err != nil {
			return err
		}
	}
	return nil
}

// work is what an index lacks of a view: documents to remove, and rows to make documents of.
type work struct {
	view *readmodel.View
	gone map[string]struct{} // by document id
	rows []*readmodel.Row
}

// changes returns what has changed since the view that the index has.
func (f *follower) changes(v *readmodel.View) (work, error) {
	w := work{view: v, gone: map[string]struct{}{}}
	refs, ok := v.ChangedSince(f.view.Sequence())
	if !ok {
		return f.compare(v)
	}
	seen := make(map[readmodel.RowRef]bool, len(refs))
	for _, ref := range refs {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		was, is := f.view.ShownAt(ref), v.ShownAt(ref)
		if was != nil && (is == nil || is.ID() != was.ID()) {
			w.gone[documentID(was)] = struct{}{}
		}
		if is != nil {
			w.rows = append(w.rows, is)
		}
	}
	return w, nil
}

// index brings the index to a view, in batches.
func (f *follower) index(ctx context.Context, w work) error {
	for len(w.gone) > 0 || len(w.rows) > 0 || !f.state.Complete {
		f.begin()
		rows := w.rows[:min(batchRows, len(w.rows))]
		w.rows = w.rows[len(rows):]
		gone := slices.Collect(maps.Keys(w.gone))
		f.analyst.begin(len(rows))
		for _, r := range rows {
			if err := f.analyst.add(r); err != nil {
				return err
			}
			f.meter.tick()
		}
		if len(w.rows) == 0 {
			f.state.Complete, f.state.Sequence, f.state.Digest = true, w.view.Sequence(), w.view.Digest().String()
		}
		if err := f.store.write(f.analyst.documents, gone, &f.state); err != nil {
			return err
		}
		clear(w.gone)
		f.meter.tick()
		if err := f.keepUp(ctx); err != nil {
			return err
		}
		f.meter.begin()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(w.rows) == 0 {
			break
		}
	}
	f.analyst.end()
	f.view = w.view
	f.state.Sequence = w.view.Sequence()
	defer f.end()
	return f.show()
}

// keepUp waits while too many batches are in memory alone.
func (f *follower) keepUp(ctx context.Context) error {
	for f.store.unpersisted.Load() >= maxUnpersisted {
		select {
		case <-f.store.persisted:
		case err := <-f.store.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
