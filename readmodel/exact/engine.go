package exact

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/indexing"
)

// Engine maintains the text index of one model. Its fields are set before Run; any goroutine may
// call Sequence and Problem.
type Engine struct {
	// Dir is the directory of the index's files. Run removes everything else there.
	Dir string
	// Pacer limits the work to its share of the CPUs. Required.
	Pacer *indexing.Pacer
	// Logger gets one line when the index is first complete and one for each failure. If nil,
	// nothing is logged.
	Logger *slog.Logger

	runner indexing.Runner
	tuning tuning
}

// tuning is set by tests. Zero values mean the constants.
type tuning struct {
	maxPending int           // changed rows of a part that searches look at; one more makes a block. Zero: 32
	minRenewal int           // how much a vocabulary grows before another is begun, in bytes, beside doubling. Zero: 1 MiB
	renewAfter time.Duration // Zero: a day
	pause      time.Duration // Zero: 20 ms
	retry      time.Duration
}

// Run maintains an index of m, which m's searches use, until ctx ends. It retries failures after a
// while, and searches keep what has been indexed. An Engine runs once; a model may have one running
// Engine at a time.
func (e *Engine) Run(ctx context.Context, m *readmodel.Model) {
	k := &e.runner
	k.Name, k.Failing = "text index", "The text index cannot be written, so searches look at the entries it lacks"
	k.Pacer, k.Pause = e.Pacer, cmp.Or(e.tuning.pause, 20*time.Millisecond)
	k.Retry, k.HangsAfter, k.Logger = e.tuning.retry, 10*time.Second, e.Logger
	k.Open = func(context.Context, *indexing.Work) (indexing.Index, error) {
		return newBuilder(e.Dir, m, e.tuning), nil
	}
	k.Run(ctx, m)
}

// Sequence returns the last sequence at which the index covered the model, except for a few rows
// that searches scan, or 0 before that.
func (e *Engine) Sequence() uint64 { return e.runner.Sequence() }

// Problem returns a sentence that describes the index's problem, or "".
func (e *Engine) Problem() string { return e.runner.Problem() }
