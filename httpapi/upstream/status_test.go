package upstream

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.org/registry/events/eventstest"
	"github.com/stretchr/testify/require"
)

// asked is a component that counts.
type asked struct {
	calls atomic.Int64
	well  atomic.Bool
	then  func(ctx context.Context) error // unless well; nil: it is
}

func (a *asked) ask(ctx context.Context) error {
	a.calls.Add(1)
	if a.then == nil || a.well.Load() {
		return nil
	}
	return a.then(ctx)
}

// deaf answers when its context ends, hung long after that.
func deaf(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
func hung(d time.Duration) func(context.Context) error {
	return func(context.Context) error { time.Sleep(d); return nil }
}

// rounds over components that need no network, for tests in a bubble. The cleanup is the caller's.
func roundsOf(t *testing.T, log *eventstest.Log, components ...*asked) (*statusRounds, *background) {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(log, nil))
	work := newBackground(logger)
	s, err := newStatusRounds(StatusConfig{}, newMetrics(nil), work, logger)
	require.NoError(t, err)
	for i, a := range components {
		s.probes[i].ask = a.ask
	}
	return s, work
}

func must(t testing.TB, s *Status, err error) []Component {
	t.Helper()
	require.NoError(t, err)
	return s.Components
}

// However many ask, and whenever: a component is asked at most once in 15 s, errors included.
func TestStatusIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := &asked{then: hung(time.Second)}, &asked{then: func(context.Context) error { return errors.New("down") }}
		s, work := roundsOf(t, &eventstest.Log{}, good, bad)
		defer work.close()
		everybody := func() {
			var group sync.WaitGroup
			for range 1000 {
				group.Go(func() {
					status, err := s.latest(t.Context())
					if got := must(t, status, err); !got[0].OK || got[0].Latency != time.Second || got[1].OK {
						t.Errorf("%+v", got)
					}
				})
			}
			group.Wait()
		}
		for round := int64(1); round <= 3; round++ {
			everybody()
			time.Sleep(statusKept - time.Nanosecond)
			everybody() // still kept
			if good.calls.Load() != round || bad.calls.Load() != round {
				t.Fatalf("asked %d and %d times in round %d", good.calls.Load(), bad.calls.Load(), round)
			}
			time.Sleep(time.Nanosecond)
		}
	})
}

// An answer is never taken for the end of the time to wait for it.
func TestAnswerIsNotLost(t *testing.T) {
	work := newBackground(slog.New(slog.DiscardHandler))
	defer work.close()
	c := probe{ask: func(context.Context) error { return nil }, timeout: time.Minute, work: work}
	for range 20_000 {
		require.NoError(t, c.call(t.Context()))
	}
}

// What hangs costs 6 s and nobody else's answer, whether or not it heeds its context; it is not
// asked again while it hangs, and is well again when it answers.
func TestStatusOfWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &eventstest.Log{}
		ignores := &asked{then: hung(40 * time.Second)}
		heeds := &asked{then: deaf}
		s, work := roundsOf(t, log, ignores, &asked{}, heeds, &asked{})
		defer work.close()
		began := time.Now()
		status, err := s.latest(t.Context())
		got := must(t, status, err)
		if took := time.Since(began); took != callTimeout {
			t.Errorf("took %v", took)
		}
		for i, want := range []Component{{"database", true, false, callTimeout}, {"guard", true, true, 0}, {"chat", true, false, callTimeout}, {"coin", true, true, 0}} {
			if got[i] != want {
				t.Errorf("%+v, want %+v", got[i], want)
			}
		}
		time.Sleep(statusKept)
		status, err = s.latest(t.Context())
		if got := must(t, status, err); got[0].OK || got[0].Latency != 21*time.Second || ignores.calls.Load() != 1 {
			t.Errorf("%+v after %d calls", got[0], ignores.calls.Load())
		}
		ignores.well.Store(true)
		heeds.well.Store(true)
		time.Sleep(40 * time.Second)
		status, err = s.latest(t.Context())
		if got := must(t, status, err); !got[0].OK || !got[2].OK {
			t.Errorf("%+v", got)
		}
		for text, times := range map[string]int{"component does not answer": 2, "component answers again": 2} {
			if n := strings.Count(log.String(), text); n != times {
				t.Errorf("%q is logged %d times, want %d: %s", text, n, times, log)
			}
		}
	})
}

// The first reader's leaving cancels nothing for the others.
func TestStatusOutlivesItsFirstReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &asked{then: hung(3 * time.Second)}
		s, work := roundsOf(t, &eventstest.Log{}, slow)
		defer work.close()
		ctx, leave := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { _, err := s.latest(ctx); first <- err }()
		time.Sleep(time.Second)
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the reader who left got %v", err)
		}
		status, err := s.latest(t.Context())
		if got := must(t, status, err); !got[0].OK || got[0].Latency != 3*time.Second || slow.calls.Load() != 1 {
			t.Errorf("%+v after %d calls", got[0], slow.calls.Load())
		}
	})
}

// A probe that panics is one that fails, and the process lives.
func TestStatusProbePanics(t *testing.T) {
	f := serve(t, func(c *Config) { c.Status.Database = func(context.Context) error { panic("disk on fire") } })
	status, err := f.Status(t.Context())
	got := must(t, status, err)
	f.Close() // waits for the log line
	if got[0].OK || !strings.Contains(f.log.String(), "disk on fire") {
		t.Errorf("%+v, log %s", got, f.log)
	}
}

// A database that does not answer, or fails, is not ok.
func TestStatusOfDatabase(t *testing.T) {
	for name, then := range map[string]func(context.Context) error{
		"no answer": deaf, "not to be written": func(context.Context) error { return errors.New("input/output error") },
	} {
		database := &asked{then: then}
		f := serve(t, func(c *Config) { c.Status.Database, c.Status.timeout = database.ask, 50*time.Millisecond })
		status, err := f.Status(t.Context())
		if got := must(t, status, err); got[0].OK || database.calls.Load() != 1 {
			t.Errorf("%s: %+v after %d questions", name, got[0], database.calls.Load())
		}
	}
}

// After Close nobody is asked.
func TestStatusAfterClose(t *testing.T) {
	f := serve(t)
	f.Close()
	if _, err := f.Status(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
