package indexing

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Demand says how much others want the processors.
type Demand int

// The demands, and what an index may take beside each.
const (
	None   Demand = iota // all processors
	Some                 // a quarter of them
	Much                 // Pacer.Least
	Import               // a thirty-second: nobody searches beside it
)

const (
	someShare   = 0.25
	importShare = 1.0 / 32
	// demandEvery is how often the demand is asked for.
	demandEvery = 300 * time.Millisecond
	// slice is how much work is done before a rest.
	slice = 5 * time.Millisecond
)

// Pacer holds the work of an index to its share of the processors: after a slice of work it rests
// in proportion. Its fields are set before its use. Any goroutine may use it.
type Pacer struct {
	// Demand reports how much others want the processors. One goroutine at a time calls it. Nil:
	// always Some.
	Demand func() Demand
	// Least is the share that is left while there is Much demand. Zero: a quarter.
	Least float64

	mu      sync.Mutex
	asked   time.Time
	limiter *rate.Limiter // of microseconds of work
}

// Rest rests for work that has taken one processor for so long. It returns early when ctx ends.
func (p *Pacer) Rest(ctx context.Context, worked time.Duration) {
	for ; worked > 0 && ctx.Err() == nil; worked -= slice {
		limiter := p.current()
		if limiter.Limit() == rate.Inf {
			return
		}
		_ = limiter.WaitN(ctx, int(min(worked, slice).Microseconds())) // its error is that ctx ends
	}
}

// current returns the limiter, set to what the demand is now.
func (p *Pacer) current() *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) > demandEvery {
		limit := p.limit()
		if p.limiter == nil {
			p.limiter = rate.NewLimiter(limit, int(slice.Microseconds()))
		}
		if p.limiter.Limit() != limit {
			p.limiter.SetLimit(limit)
		}
		p.asked = time.Now()
	}
	return p.limiter
}

func (p *Pacer) limit() rate.Limit {
	demand, share := Some, someShare
	if p.Demand != nil {
		demand = p.Demand()
	}
	switch {
	case demand == None:
		return rate.Inf
	case demand == Import:
		share = importShare
	case demand == Much && p.Least > 0:
		share = p.Least
	}
	processors := min(runtime.GOMAXPROCS(0), runtime.NumCPU()) // there may be more threads
	return rate.Limit(share * float64(processors) * float64(time.Second/time.Microsecond))
}
