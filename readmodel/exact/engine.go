package exact

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/indexing"
)

// Engine keeps the text index of one model. Its fields are set before Run; any goroutine may call
// Sequence and Trouble.
type Engine struct {
	// Dir is where the index's files are made. What else is there is removed.
	Dir string
	// Pacer holds the work to its share of the CPUs. Required.
	Pacer *indexing.Pacer
	// Logger gets one line when the index is first complete and one for each failure. Nil: none.
	Logger *slog.Logger

	keeper indexing.Keeper
	tuning tuning
}

// tuning is what tests set. Zero values: the constants.
type tuning struct {
	maxPending int           // changed rows of a part that searches look at; one more makes a block. Zero: 32
	minRenewal int           // how much a vocabulary grows before another is begun, in bytes, beside doubling. Zero: 1 MiB
	renewAfter time.Duration // Zero: a day
	pause      time.Duration // Zero: 20 ms
	retry      time.Duration
}

// Run keeps an index of m, which its searches use, until ctx ends. What fails is tried again after
// a while, and what has been indexed stays in use. An Engine runs once, and for a model one at a
// time.
func (e *Engine) Run(ctx context.Context, m *readmodel.Model) {
	k := &e.keeper
	k.Name, k.Failing = "text index", "The text index cannot be written, so searches look at the entries it lacks"
	k.Pacer, k.Pause = e.Pacer, cmp.Or(e.tuning.pause, 20*time.Millisecond)
	k.Retry, k.HangsAfter, k.Logger = e.tuning.retry, 10*time.Second, e.Logger
	k.Open = func(context.Context, *indexing.Work) (indexing.Index, error) {
		return newBuilder(e.Dir, m, e.tuning), nil
	}
	k.Run(ctx, m)
}

// Sequence returns the last sequence at which the index covered the model, but for a few entries
// that searches look at; 0 while it has never come so far.
func (e *Engine) Sequence() uint64 { return e.keeper.Sequence() }

// Trouble returns a sentence that says what is wrong with the index, or "".
func (e *Engine) Trouble() string { return e.keeper.Trouble() }
