package indexing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"example.org/registry/events/pause"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// Index is an open index of one kind. One goroutine calls it.
type Index interface {
	// Follow brings the index closer to v, the newest view, and publishes the result. It returns
	// after one step, so that it soon gets a newer view. While it works, it calls w.Tick as often
	// as it can.
	Follow(ctx context.Context, w *Work, v *readmodel.View) (State, error)
	// Close releases the files. It is called once, after the last Follow.
	Close()
}

// State is the progress of a Follow.
type State int

const (
	Working  State = iota // more work is ready
	Waiting               // complete but for work that will be ready after a pause
	Complete              // no work until the model changes
)

// Runner runs one index of a model, from the opening of its files on. Its fields are set before
// Run. One goroutine calls Run, once; any may call the other methods.
type Runner struct {
	// Name is what the log calls the index, such as "text index".
	Name string
	// Failing begins the sentence of Problem after a failure: what does not work, and its effect on
	// clients.
	Failing string
	// Open opens the index, or makes an empty one. It works in steps, as Follow does.
	Open func(ctx context.Context, w *Work) (Index, error)
	// SetAside makes room for a new index after a step has failed, or has hung and was abandoned.
	// Then Open is called again. If SetAside is nil, the index stays, and Follow, or Open if that
	// failed, is called again.
	SetAside func() error
	// Pacer limits the work to its share of the CPUs. Required.
	Pacer *Pacer
	// Pause is how long changes gather before one Follow handles them together.
	Pause time.Duration
	// Retry is the wait after a failure. Zero means 5 s.
	Retry time.Duration
	// HangsAfter is how long a step may show no progress. Zero means 30 s.
	HangsAfter time.Duration
	// Logger gets a line when the index is first complete after an opening, and one for each
	// failure. If nil, nothing is logged.
	Logger *slog.Logger

	work     atomic.Pointer[Work] // of the index that is open
	trouble  atomic.Pointer[string]
	sequence atomic.Uint64
	renewed  atomic.Uint64
}

// StaleError is the error of an index that does not belong to this model. The index is rebuilt at once;
// it is not a problem.
type StaleError struct{ Reason string }

// Error returns the reason.
func (e *StaleError) Error() string { return e.Reason }

// lookEvery is the longest time between two calls of Follow.
const lookEvery = time.Second

// Run runs the index until ctx ends. It abandons a step that hangs then.
func (k *Runner) Run(ctx context.Context, m *readmodel.Model) {
	for ctx.Err() == nil {
		err := k.runOnce(ctx, m)
		if ctx.Err() != nil || err == nil {
			return
		}
		k.sequence.Store(0)
		k.renewed.Add(1)
		k.failed(err)
		if k.SetAside != nil {
			if err := k.SetAside(); err != nil {
				k.log().Error(k.Name+" cannot be set aside", "error", err)
			}
		}
		if !isStale(err) {
			pause.For(ctx, k.retry())
		}
	}
}

// runOnce runs the index in its own goroutine until it fails, and abandons the goroutine if a step
// hangs.
func (k *Runner) runOnce(ctx context.Context, m *readmodel.Model) error {
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &Work{pacer: k.Pacer}
	k.work.Store(w)
	defer k.work.Store(nil)
	ended := make(chan error, 1)
	go func() { ended <- k.live(life, w, m) }()
	tick := time.NewTicker(k.hangsAfter() / 10)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			if k.hangs() > 0 && (k.SetAside != nil || ctx.Err() != nil) {
				return fmt.Errorf("a step has made no progress for %s", k.hangsAfter())
			}
		}
	}
}

// live opens the index and follows the model until ctx ends. If SetAside is set, it also returns
// when a step fails.
func (k *Runner) live(ctx context.Context, w *Work, m *readmodel.Model) error {
	began := time.Now()
	var index Index
	err := w.do(func() (err error) { index, err = k.Open(ctx, w); return err })
	if err != nil {
		return err
	}
	defer func() { _ = w.do(func() error { index.Close(); return nil }) }()
	told := false
	for ctx.Err() == nil {
		v, state := m.View(), Complete
		err := w.do(func() (err error) { state, err = index.Follow(ctx, w, v); return err })
		switch {
		case ctx.Err() != nil:
		case err != nil && k.SetAside != nil:
			return err
		case err != nil:
			k.failed(err)
			pause.For(ctx, k.retry())
		case state != Working:
			k.trouble.Store(nil)
			if !told {
				told = true
				k.log().Info(k.Name+" complete", "sequence", v.Sequence(), "took", time.Since(began).Round(time.Millisecond).String())
			}
			k.sequence.Store(v.Sequence())
			if state == Complete {
				idle, cancel := context.WithTimeout(ctx, lookEvery)
				_, _ = m.Await(idle, v.Sequence()+1) // the error is idle's
				cancel()
			}
			pause.For(ctx, k.Pause)
		}
	}
	return nil
}

// Sequence returns the last sequence at which the index was complete, except for rows that its
// searches scan, or 0 before that.
func (k *Runner) Sequence() uint64 { return k.sequence.Load() }

// Renewed returns how often the index has been removed and rebuilt.
func (k *Runner) Renewed() uint64 { return k.renewed.Load() }

// Problem returns a sentence that describes the index's problem, or "".
func (k *Runner) Problem() string {
	if d := k.hangs(); d > 0 {
		return fmt.Sprintf("%s: it has made no progress for %s.", k.Failing, d.Round(time.Second))
	}
	if t := k.trouble.Load(); t != nil {
		return *t
	}
	return ""
}

// hangs returns how long the current step has shown no progress if that exceeds HangsAfter, else 0.
func (k *Runner) hangs() time.Duration {
	w := k.work.Load()
	if w == nil {
		return 0
	}
	if alive := w.alive.Load(); alive != nil && time.Since(*alive) > k.hangsAfter() {
		return time.Since(*alive)
	}
	return 0
}

func (k *Runner) failed(err error) {
	k.trouble.Store(new(k.Failing + ": " + err.Error() + "."))
	if isStale(err) {
		k.log().Info(k.Name+" is being made anew", "reason", err.Error())
	} else {
		k.log().Error(k.Name+" has failed", "error", err, "retry", k.retry().String())
	}
}

func isStale(err error) bool {
	var stale *StaleError
	return errors.As(err, &stale)
}

func (k *Runner) retry() time.Duration      { return cmp.Or(k.Retry, 5*time.Second) }
func (k *Runner) hangsAfter() time.Duration { return cmp.Or(k.HangsAfter, 30*time.Second) }

// log returns Logger, or a logger that discards everything.
func (k *Runner) log() *slog.Logger { return cmp.Or(k.Logger, slog.New(slog.DiscardHandler)) }

// Work is the context in which an index runs its steps. Only the goroutine that calls Follow uses
// it.
type Work struct {
	pacer *Pacer
	alive atomic.Pointer[time.Time] // last sign of progress of the current step; nil between steps
	began time.Time                 // start of the work since the last rest
}

// Tick shows that the work makes progress, and rests now and then.
func (w *Work) Tick(ctx context.Context) {
	for worked := time.Since(w.began); worked >= slice; worked -= slice {
		w.pacer.Rest(ctx, slice)
		w.Waited()
	}
}

// Waited shows that the work makes progress, and does not count the time until now as work.
func (w *Work) Waited() {
	w.began = time.Now()
	w.alive.Store(new(w.began))
}

// do runs a step.
func (w *Work) do(step func() error) error {
	w.Waited()
	defer w.alive.Store(nil)
	return fault.Catch(step)
}

// NewWork makes a Work without a Runner, for tests of an Index.
func NewWork(p *Pacer) *Work { return &Work{pacer: p, began: time.Now()} }
