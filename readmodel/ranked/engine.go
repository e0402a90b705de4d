package ranked

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/vellum/levenshtein"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/indexing"
	"example.org/registry/readmodel/terms"
)

// Engine maintains the index of ranked search of one model. Its fields are set before Run; any
// goroutine may call the other methods.
type Engine struct {
	// Dir is the directory of the index.
	Dir string
	// Pacer limits the work to its share of the CPUs. Required.
	Pacer *indexing.Pacer
	// EraseAfter is the age at which a file with words of deleted documents is removed, after its
	// other documents were rewritten. Zero means a day.
	EraseAfter time.Duration
	// Logger gets a line each time the index is complete or rebuilt. If nil, nothing is logged.
	Logger *slog.Logger

	tuning tuning

	mu        sync.Mutex
	builder   *builder   // whose index searches use
	published *published // nil if there is no index

	runner    indexing.Runner
	analyzers sync.Pool // of *terms.Analyzer
	stemmer   atomic.Pointer[terms.Stemmer]
	builders  [2]atomic.Pointer[levenshtein.LevenshteinAutomatonBuilder] // see automata
}

// tuning is set by tests. Zero values mean the constants.
type tuning struct {
	pause, retry time.Duration
	nap          time.Duration
	hangsAfter   time.Duration
	at           func(string) error // called at points where tests fail or hang; may be nil
}

const (
	// pause is how long changes gather before they are indexed together: each batch is a segment.
	pause = 400 * time.Millisecond
	// nap is how long batches gather before bleve writes them to the disk together.
	nap = 100 * time.Millisecond
	// hangsAfter is how long a step may take without progress before the index is abandoned.
	hangsAfter = 30 * time.Second
)

// Run maintains an index of m until ctx ends. An index that does not fit, is damaged or hangs is
// removed and rebuilt. An Engine runs once; a directory may have one running Engine at a time.
func (e *Engine) Run(ctx context.Context, m *readmodel.Model, id Identity) {
	k := &e.runner
	k.Name, k.Failing = "index of ranked search", "The index of ranked search is being made anew"
	k.Pacer, k.Pause = e.Pacer, cmp.Or(e.tuning.pause, pause)
	k.Retry, k.HangsAfter, k.Logger = e.tuning.retry, e.hangsAfter(), e.Logger
	k.Open = func(ctx context.Context, w *indexing.Work) (indexing.Index, error) {
		b := &builder{engine: e, model: m, state: newState(id), tables: map[uint64]*table{}}
		e.mu.Lock()
		e.builder = b
		e.mu.Unlock()
		return b, b.open(ctx, w)
	}
	k.SetAside = func() error {
		e.unpublish(nil)
		return os.RemoveAll(filesOf(e.Dir))
	}
	k.Run(ctx, m)
}

// Sequence returns the last sequence that the index covers, or 0 if there is no index.
func (e *Engine) Sequence() uint64 { return e.runner.Sequence() }

// Problem returns a sentence that describes the index's problem, or "".
func (e *Engine) Problem() string { return e.runner.Problem() }

// Renewed returns how often the index has been rebuilt because of a problem.
func (e *Engine) Renewed() uint64 { return e.runner.Renewed() }

// publish makes p the index of searches, unless p's builder has been abandoned.
func (e *Engine) publish(p *published) {
	e.mu.Lock()
	old := p
	if e.builder == p.by {
		old, e.published = e.published, p
	}
	e.mu.Unlock()
	old.release()
}

// unpublish withdraws and releases the index that b published. If b is nil, it withdraws any index.
func (e *Engine) unpublish(b *builder) {
	e.mu.Lock()
	var old *published
	if b == nil || e.builder == b {
		old = e.published
		e.builder, e.published = nil, nil
	}
	e.mu.Unlock()
	old.release()
}

// acquire returns the published index, or nil. The caller releases it.
func (e *Engine) acquire() *published {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.published != nil {
		e.published.users.Add(1)
	}
	return e.published
}

func (e *Engine) hangsAfter() time.Duration { return cmp.Or(e.tuning.hangsAfter, hangsAfter) }

// load loads the stemmer, once.
func (e *Engine) load() error {
	if e.stemmer.Load() != nil {
		return nil
	}
	s, err := terms.New()
	if err == nil {
		e.stemmer.Store(s)
	}
	return err
}

// analyzer returns an analyzer of the pool. Call it only once there is an index.
func (e *Engine) analyzer() *terms.Analyzer {
	if a, ok := e.analyzers.Get().(*terms.Analyzer); ok {
		return a
	}
	return e.stemmer.Load().Analyzer()
}
