package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.org/registry/readmodel"
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
func roundsOf(t *testing.T, log *logBuffer, components ...*asked) (*statusRounds, *detached) {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(log, nil))
	work := newDetached(logger)
	health := &Health{Reader: readmodel.New(), State: func() State { return State{Ready: true} }}
	s, err := newStatusRounds(StatusConfig{}, health, newUpstreamMetrics(nil), work, logger)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range components {
		s.components[i].ask = a.ask
	}
	return s, work
}

func statusOfRound(t testing.TB, body []byte, err error) statusBody {
	t.Helper()
	var s statusBody
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	return s
}

// However many ask, and whenever: a component is asked at most once in 15 s, errors included.
func TestStatusIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := &asked{then: hung(time.Second)}, &asked{then: func(context.Context) error { return errors.New("down") }}
		s, work := roundsOf(t, &logBuffer{}, good, bad)
		defer work.close()
		everybody := func() {
			var group sync.WaitGroup
			for range 1000 {
				group.Go(func() {
					body, err := s.latest(t.Context())
					if got := statusOfRound(t, body, err); !got.Checks[0].OK || got.Checks[0].LatencyMs != 1000 || got.Checks[1].OK {
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
	work := newDetached(slog.New(slog.DiscardHandler))
	defer work.close()
	c := component{ask: func(context.Context) error { return nil }, timeout: time.Minute, work: work}
	for range 20_000 {
		if err := c.askWithin(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// What hangs costs 6 s and nobody else's answer, whether or not it heeds its context; it is not
// asked again while it hangs, and is well again when it answers.
func TestStatusOfWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logBuffer{}
		ignores := &asked{then: hung(40 * time.Second)}
		heeds := &asked{then: deaf}
		s, work := roundsOf(t, log, ignores, &asked{}, heeds, &asked{})
		defer work.close()
		began := time.Now()
		body, err := s.latest(t.Context())
		got := statusOfRound(t, body, err)
		if took := time.Since(began); took != upstreamTimeout {
			t.Errorf("took %v", took)
		}
		for i, want := range []statusCheck{{"database", false, 6000}, {"guard", true, 0}, {"chat", false, 6000}, {"coin", true, 0}} {
			if got.Checks[i] != want {
				t.Errorf("%+v, want %+v", got.Checks[i], want)
			}
		}
		time.Sleep(statusKept)
		body, err = s.latest(t.Context())
		if got := statusOfRound(t, body, err); got.Checks[0].OK || got.Checks[0].LatencyMs != 21000 || ignores.calls.Load() != 1 {
			t.Errorf("%+v after %d calls", got.Checks[0], ignores.calls.Load())
		}
		ignores.well.Store(true)
		heeds.well.Store(true)
		time.Sleep(40 * time.Second)
		body, err = s.latest(t.Context())
		if got := statusOfRound(t, body, err); !got.Checks[0].OK || !got.Checks[2].OK {
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
		s, work := roundsOf(t, &logBuffer{}, slow)
		defer work.close()
		ctx, leave := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { _, err := s.latest(ctx); first <- err }()
		time.Sleep(time.Second)
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the reader who left got %v", err)
		}
		body, err := s.latest(t.Context())
		if got := statusOfRound(t, body, err); !got.Checks[0].OK || got.Checks[0].LatencyMs != 3000 || slow.calls.Load() != 1 {
			t.Errorf("%+v after %d calls", got.Checks[0], slow.calls.Load())
		}
	})
}

// A probe that panics is one that fails, and the process lives.
func TestStatusProbePanics(t *testing.T) {
	log := &logBuffer{}
	f := serve(t, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(log, nil))
		c.Status.Database = func(context.Context) error { panic("disk on fire") }
	})
	got := statusOfRound(t, []byte(f.get(t, "/api/status").body), nil)
	f.public.Close() // waits for the log line
	if got.Checks[0].OK || !strings.Contains(log.String(), "disk on fire") {
		t.Errorf("%+v, log %s", got, log)
	}
}

// The body over HTTP: four components in order, UTC with milliseconds, nothing configured.
func TestStatusUnconfigured(t *testing.T) {
	f := serve(t)
	before := time.Now().Add(-time.Millisecond)
	a := f.get(t, "/api/status?x=1")
	got := statusOfRound(t, []byte(a.body), nil)
	for i, id := range []string{"database", "guard", "chat", "coin"} {
		if want := (statusCheck{id, false, 0}); got.Checks[i] != want {
			t.Errorf("%+v, want %+v", got.Checks[i], want)
		}
	}
	at, err := time.Parse("2006-01-02T15:04:05.000Z", got.CheckedAt)
	if err != nil || at.Before(before) || at.After(time.Now()) {
		t.Errorf("checkedAt %q: %v", got.CheckedAt, err)
	}
	if a.header.Get("Registry-Sequence") != "" || a.header.Get("Etag") != "" {
		t.Errorf("headers %v", a.header)
	}
}

// database is false in every row of the contract's table where the answers are none or old.
func TestStatusOfDatabase(t *testing.T) {
	broken := func(context.Context) error { return errors.New("input/output error") }
	for name, c := range map[string]struct {
		ok     bool
		asks   int64
		change func(*Config, *State, *asked)
	}{
		"caught up":         {true, 1, func(*Config, *State, *asked) {}},
		"not caught up":     {false, 0, func(_ *Config, s *State, _ *asked) { s.Ready = false }},
		"frozen":            {false, 0, func(_ *Config, s *State, _ *asked) { s.Frozen = true }},
		"out of touch":      {false, 0, func(c *Config, _ *State, _ *asked) { c.Health.MaxStaleness = time.Minute }},
		"too few":           {false, 0, func(c *Config, _ *State, _ *asked) { c.Health.MinEntries = 1000 }},
		"no answer":         {false, 1, func(c *Config, _ *State, a *asked) { a.then, c.Status.Timeout = deaf, 50*time.Millisecond }},
		"not to be written": {false, 1, func(_ *Config, _ *State, a *asked) { a.then = broken }},
	} {
		database, state := &asked{}, State{Ready: true, AsOf: asOf()}
		f := serve(t, func(cfg *Config) {
			cfg.Status.Database = database.ask
			c.change(cfg, &state, database)
		})
		f.set(func(s *State) { *s = state })
		got := statusOfRound(t, []byte(f.get(t, "/api/status").body), nil)
		if got.Checks[0].OK != c.ok || database.calls.Load() != c.asks {
			t.Errorf("%s: %+v after %d questions", name, got.Checks[0], database.calls.Load())
		}
	}
}
