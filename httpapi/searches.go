package httpapi

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// SearchLimits bounds text searches, which cost milliseconds where everything else costs
// microseconds. What exceeds the bounds is refused at once rather than kept waiting.
type SearchLimits struct {
	Running int           // at the same time. Zero: one for each processor
	Waiting int           // for one of those to end. Zero: 64
	Wait    time.Duration // how long. Zero: 3 s
}

// searches lets few searches run at once. Other requests do not pass through it.
type searches struct {
	slots   *semaphore.Weighted
	wait    time.Duration
	limit   int64
	waiting atomic.Int64
}

func newSearches(l SearchLimits) *searches {
	if l.Running <= 0 {
		l.Running = runtime.GOMAXPROCS(0)
	}
	if l.Waiting <= 0 {
		l.Waiting = 64
	}
	if l.Wait <= 0 {
		l.Wait = 3 * time.Second
	}
	return &searches{slots: semaphore.NewWeighted(int64(l.Running)), wait: l.Wait, limit: int64(l.Waiting)}
}

// enter takes a slot for a search; leave gives it back. For what is no search both do nothing.
// Errors: errBusy, or that of ctx.
func (s *searches) enter(ctx context.Context, search bool) (leave func(), err error) {
	if !search {
		return func() {}, nil
	}
	if !s.slots.TryAcquire(1) {
		if err := s.queue(ctx); err != nil {
			return nil, err
		}
	}
	return s.leave, nil
}

func (s *searches) leave() { s.slots.Release(1) }

func (s *searches) queue(ctx context.Context) error {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > s.limit {
		return errBusy
	}
	bounded, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	if s.slots.Acquire(bounded, 1) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errBusy
}
