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
	// Follow brings the index closer to v, the newest view, and publishes what it has. It returns
	// after a step, so that it soon gets a newer view, and calls w.Tick as often as it can while it
	// works.
	Follow(ctx context.Context, w *Work, v *readmodel.View) (State, error)
	// Close ends the use of the files. It is called once, after the last Follow.
	Close()
}

// State says how far a Follow has come.
type State int

const (
	Working  State = iota // there is more to do at once
	Waiting               // there is more to do after a pause
	Complete              // there is nothing to do until the model changes
)

// Keeper keeps one index of a model, from the opening of its files on. Its fields are set before
// Run. One goroutine calls Run, once; any may call the other methods.
type Keeper struct {
	// Name is what the log calls the index, such as "text index".
	Name string
	// Failing begins the sentence of Trouble after a failure: what does not work, and what readers
	// notice of it.
	Failing string
	// Open opens the index, or begins an empty one. Each of its steps is work, as those of Follow
	// are.
	Open func(ctx context.Context, w *Work) (Index, error)
	// SetAside makes room for a new index after a step has failed, or has hung and was left to
	// itself. Then Open is called again. Nil: the index stays as it is, and
	// Follow, or Open if that has failed, is called again.
	SetAside func() error
	// Pacer holds the work to its share of the CPUs. Required.
	Pacer *Pacer
	// Pause is how long changes gather before they are followed together.
	Pause time.Duration
	// Retry is how long to wait after a failure. Zero: 5 s.
	Retry time.Duration
	// HangsAfter is how long a step may show no progress. Zero: 30 s.
	HangsAfter time.Duration
	// Logger gets a line when the index is complete for the first time after it was opened, and one
	// for each failure. Nil: none.
	Logger *slog.Logger

	work     atomic.Pointer[Work] // of the present life
	trouble  atomic.Pointer[string]
	sequence atomic.Uint64
	renewed  atomic.Uint64
}

// Stale means that an index is not one of this model: it is rebuilt without a wait, and nothing
// is wrong.
type Stale struct{ Reason string }

// Error is the reason.
func (e *Stale) Error() string { return e.Reason }

// lookEvery is how often Follow is called at least.
const lookEvery = time.Second

// Run keeps the index until ctx ends. Where a step hangs then, it is left to itself.
func (k *Keeper) Run(ctx context.Context, m *readmodel.Model) {
	for ctx.Err() == nil {
		err := k.watch(ctx, m)
		if ctx.Err() != nil || err == nil {
			return
		}
		k.sequence.Store(0)
		k.renewed.Add(1)
		k.failed(err)
		if k.SetAside != nil {
			if err := k.SetAside(); err != nil {
				k.Log().Error(k.Name+" cannot be set aside", "error", err)
			}
		}
		if !isStale(err) {
			pause.For(ctx, k.retry())
		}
	}
}

// watch lives one life of the index in a goroutine of its own, and leaves that to itself if a step
// hangs.
func (k *Keeper) watch(ctx context.Context, m *readmodel.Model) error {
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

// live opens the index and follows the model until ctx ends or, if there is SetAside, something is
// wrong.
func (k *Keeper) live(ctx context.Context, w *Work, m *readmodel.Model) error {
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
		case state == Complete:
			k.trouble.Store(nil)
			if !told {
				told = true
				k.Log().Info(k.Name+" complete", "sequence", v.Sequence(), "took", time.Since(began).Round(time.Millisecond).String())
			}
			k.sequence.Store(v.Sequence())
			idle, cancel := context.WithTimeout(ctx, lookEvery)
			_, _ = m.Await(idle, v.Sequence()+1) // its error is idle's
			cancel()
			pause.For(ctx, k.Pause)
		case state == Waiting:
			pause.For(ctx, k.Pause)
		}
	}
	return nil
}

// Sequence returns the last sequence at which the index was complete, but for entries that its
// searches look at; 0 while it never was.
func (k *Keeper) Sequence() uint64 { return k.sequence.Load() }

// Renewed returns how often the index has been set aside and rebuilt.
func (k *Keeper) Renewed() uint64 { return k.renewed.Load() }

// Trouble returns a sentence that says what is wrong with the index, or "".
func (k *Keeper) Trouble() string {
	if d := k.hangs(); d > 0 {
		return fmt.Sprintf("%s: it has made no progress for %s.", k.Failing, d.Round(time.Second))
	}
	if t := k.trouble.Load(); t != nil {
		return *t
	}
	return ""
}

// hangs returns how long the step under way has shown no progress, if that is too long, else 0.
func (k *Keeper) hangs() time.Duration {
	w := k.work.Load()
	if w == nil {
		return 0
	}
	if alive := w.alive.Load(); alive != nil && time.Since(*alive) > k.hangsAfter() {
		return time.Since(*alive)
	}
	return 0
}

func (k *Keeper) failed(err error) {
	k.trouble.Store(new(k.Failing + ": " + err.Error() + "."))
	if isStale(err) {
		k.Log().Info(k.Name+" is being made anew", "reason", err.Error())
	} else {
		k.Log().Error(k.Name+" has failed", "error", err, "retry", k.retry().String())
	}
}

func isStale(err error) bool {
	var stale *Stale
	return errors.As(err, &stale)
}

func (k *Keeper) retry() time.Duration      { return cmp.Or(k.Retry, 5*time.Second) }
func (k *Keeper) hangsAfter() time.Duration { return cmp.Or(k.HangsAfter, 30*time.Second) }

// Log returns Logger, or one that discards everything.
func (k *Keeper) Log() *slog.Logger { return cmp.Or(k.Logger, slog.New(slog.DiscardHandler)) }

// Work is what an index does in its steps. The goroutine that calls Follow uses it.
type Work struct {
	pacer *Pacer
	alive atomic.Pointer[time.Time] // the last sign of life of the step under way; nil: none is
	began time.Time                 // of the work since the last rest
}

// Tick shows that the work goes on, and rests now and then.
func (w *Work) Tick(ctx context.Context) {
	for worked := time.Since(w.began); worked >= slice; worked -= slice {
		w.pacer.Rest(ctx, slice)
		w.Waited()
	}
}

// Waited shows that the work goes on; the time until now was none.
func (w *Work) Waited() {
	w.began = time.Now()
	w.alive.Store(new(w.began))
}

// do does a step.
func (w *Work) do(step func() error) error {
	w.Waited()
	defer w.alive.Store(nil)
	return fault.Catch(step)
}

// NewWork makes a Work that no Keeper watches. It is for tests of an Index.
func NewWork(p *Pacer) *Work { return &Work{pacer: p, began: time.Now()} }
