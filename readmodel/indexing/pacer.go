package indexing

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// busyShare is the share of the CPUs that background work takes while the server is busy.
	busyShare = 1.0 / 8
	// busyEvery is how often Pacer.Busy is called.
	busyEvery = 300 * time.Millisecond
	// slice is how much work is done between rests.
	slice = 5 * time.Millisecond
)

// Pacer limits background work, such as that of indexes, to an eighth of the CPUs while the server
// is busy: after a slice of work it rests in proportion. Set Busy before its use. Any goroutine may
// use it.
type Pacer struct {
	// Busy reports whether others need the CPUs. One goroutine at a time calls it. If it is nil,
	// they always do.
	Busy func() bool

	mu      sync.Mutex
	asked   time.Time
	limiter *rate.Limiter // of microseconds of work
}

// Rest sleeps in proportion to worked, the time for which work has used one CPU. It returns early
// when ctx ends.
func (p *Pacer) Rest(ctx context.Context, worked time.Duration) {
	for ; worked > 0 && ctx.Err() == nil; worked -= slice {
		limiter := p.current()
		if limiter.Limit() == rate.Inf {
			return
		}
		_ = limiter.WaitN(ctx, int(min(worked, slice).Microseconds())) // fails only if ctx ends
	}
}

// current returns the limiter, set to the rate of the moment.
func (p *Pacer) current() *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) <= busyEvery {
		return p.limiter
	}
	limit := rate.Limit(busyShare * float64(runtime.GOMAXPROCS(0)) * float64(time.Second/time.Microsecond))
	if p.Busy != nil && !p.Busy() {
		limit = rate.Inf
	}
	if p.limiter == nil {
		p.limiter = rate.NewLimiter(limit, int(slice.Microseconds()))
	}
	p.limiter.SetLimit(limit)
	p.asked = time.Now()
	return p.limiter
}
