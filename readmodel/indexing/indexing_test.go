package indexing

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPacer: however many work at once, together they take an eighth of the CPUs while the
// server is busy, and all they like while it is not.
func TestPacer(t *testing.T) {
	const work, slices = 10 * time.Millisecond, 300 // of each worker
	for name, c := range map[string]struct {
		busy   func() bool
		longer float64 // than the work alone
	}{"idle": {func() bool { return false }, 1}, "busy": {func() bool { return true }, 8}, "not known": {nil, 8}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &Pacer{Busy: c.busy}
				began := time.Now()
				var workers sync.WaitGroup
				for range runtime.GOMAXPROCS(0) {
					workers.Go(func() {
						w := NewWork(p)
						for range slices {
							time.Sleep(work)
							w.Tick(t.Context())
						}
					})
				}
				workers.Wait()
				if got := float64(time.Since(began)) / float64(work*slices); got < c.longer*0.95 || got > c.longer*1.05 {
					t.Errorf("the work takes %.2f times as long, want %.2f", got, c.longer)
				}
			})
		})
	}
}

// TestPacerFollows: a long rest is over soon after the server is busy no more, and at once when the
// context ends.
func TestPacerFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := &Pacer{Busy: func() bool { return time.Since(began) < 10*time.Second }}
		p.Rest(t.Context(), time.Hour)
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("went on after %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		p.Rest(ctx, time.Hour)
		if took := time.Since(began); took > time.Second {
			t.Errorf("went on %s after the end", took)
		}
	})
}

// fake is an index whose steps are a function.
type fake struct {
	step   func(ctx context.Context, w *Work) (State, error)
	closed atomic.Int32
}

func (f *fake) Follow(ctx context.Context, w *Work, _ *readmodel.View) (State, error) {
	return f.step(ctx, w)
}
func (f *fake) Close() { f.closed.Add(1) }

// life is a runner of fakes: life.steps says what each Follow does, one after another, and then
// they are complete.
type life struct {
	Runner
	opened, aside atomic.Int32
	index         atomic.Pointer[fake] // the newest
	log           eventstest.Log
	end           func()
}

func start(t *testing.T, setAside bool, steps ...func(ctx context.Context, w *Work) (State, error)) *life {
	l, todo := &life{}, make(chan func(context.Context, *Work) (State, error), len(steps))
	for _, step := range steps {
		todo <- step
	}
	l.Name, l.Failing, l.Pacer = "index of fakes", "Fakes are not found", &Pacer{Busy: func() bool { return false }}
	l.Logger = slog.New(slog.NewTextHandler(&l.log, nil))
	m := readmodel.New()
	m.Apply(nil, 7)
	l.Open = func(context.Context, *Work) (Index, error) {
		l.opened.Add(1)
		l.index.Store(&fake{step: func(ctx context.Context, w *Work) (State, error) {
			select {
			case step := <-todo:
				return step(ctx, w)
			default:
				return Complete, nil
			}
		}})
		return l.index.Load(), nil
	}
	if setAside {
		l.SetAside = func() error { l.aside.Add(1); return nil }
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx, m) }()
	l.end = func() { cancel(); <-ended }
	return l
}

func fail(context.Context, *Work) (State, error)   { return Working, errors.New("no space left") }
func panics(context.Context, *Work) (State, error) { panic("a damaged page") }
func stale(context.Context, *Work) (State, error) {
	return Working, &StaleError{"it is of another stream"}
}

// TestRetried: after a failure an index without SetAside is followed again, as it is, and the
// trouble is said until it is complete.
func TestRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, false, fail, panics)
		for _, want := range []string{"Fakes are not found: no space left.", "Fakes are not found: fault: a damaged page."} {
			time.Sleep(2 * time.Second)
			if l.Problem() != want || l.Sequence() != 0 {
				t.Errorf("%q at %d, want %q", l.Problem(), l.Sequence(), want)
			}
			time.Sleep(3 * time.Second)
		}
		time.Sleep(time.Second)
		if l.Problem() != "" || l.Sequence() != 7 || l.opened.Load() != 1 || l.Renewed() != 0 {
			t.Errorf("%q at %d, opened %d times", l.Problem(), l.Sequence(), l.opened.Load())
		}
		l.end()
		if l.index.Load().closed.Load() != 1 || l.log.Count("has failed") != 2 || l.log.Count("index of fakes complete") != 1 {
			t.Errorf("closed %d times: %s", l.index.Load().closed.Load(), l.log.String())
		}
	})
}

// TestSetAside: after a failure an index with SetAside is closed, set aside and opened again, a
// stale one at once.
func TestSetAside(t *testing.T) {
	for name, c := range map[string]struct {
		step  func(context.Context, *Work) (State, error)
		after time.Duration
		level string
	}{"fails": {fail, 5 * time.Second, "level=ERROR"}, "panics": {panics, 5 * time.Second, "level=ERROR"}, "is stale": {stale, 0, "level=INFO"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := start(t, true, c.step)
				synctest.Wait()
				if c.after > 0 {
					if l.Problem() == "" || l.aside.Load() != 1 || l.opened.Load() != 1 || l.index.Load().closed.Load() != 1 {
						t.Errorf("%q, set aside %d times, opened %d times", l.Problem(), l.aside.Load(), l.opened.Load())
					}
					time.Sleep(c.after)
					synctest.Wait()
				}
				if l.Problem() != "" || l.Sequence() != 7 || l.opened.Load() != 2 || l.Renewed() != 1 || !strings.HasPrefix(l.log.String()[strings.Index(l.log.String(), "level="):], c.level) {
					t.Errorf("%q at %d, opened %d times: %s", l.Problem(), l.Sequence(), l.opened.Load(), l.log.String())
				}
				l.end()
			})
		})
	}
}

// TestHangs: a step that shows no progress is a sentence; where the index can be set aside it is
// left to itself, another is opened, and what the old one does afterwards changes nothing. A step
// that ticks, or rests, does not hang.
func TestHangs(t *testing.T) {
	for _, setAside := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			l := start(t, setAside,
				func(ctx context.Context, w *Work) (State, error) {
					for range 100 {
						time.Sleep(time.Second)
						w.Tick(ctx)
					}
					return Working, nil
				},
				func(ctx context.Context, w *Work) (State, error) { <-release; return fail(ctx, w) })
			time.Sleep(120 * time.Second) // 20 s of the second step
			if l.Problem() != "" {
				t.Errorf("after 20 s: %q", l.Problem())
			}
			first := l.index.Load()
			time.Sleep(14 * time.Second)
			if s := l.Problem(); !strings.Contains(s, "has made no progress for 3") {
				t.Errorf("after 34 s: %q", s)
			}
			time.Sleep(6 * time.Second)
			if setAside && (l.opened.Load() != 2 || l.Sequence() != 7 || l.Problem() != "" || first.closed.Load() != 0) {
				t.Errorf("opened %d times, at %d, %q", l.opened.Load(), l.Sequence(), l.Problem())
			}
			close(release)
			synctest.Wait()
			if setAside && (l.Problem() != "" || l.Renewed() != 1 || first.closed.Load() != 1) {
				t.Errorf("the old one is heard: %q", l.Problem())
			}
			if !setAside && l.opened.Load() != 1 {
				t.Errorf("opened %d times", l.opened.Load())
			}
			l.end()
		})
	}
}
