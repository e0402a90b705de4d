package serve

import (
	"runtime"
	"time"

	"example.org/registry/readmodel/indexing"
)

// What makes demand for the processors. Each request of a list takes some 30 µs of one, each first
// search a millisecond.
const (
	someRequests = 10   // a second
	muchRequests = 1000 // a second, for each processor
	someChanges  = 500  // a second
	muchChanges  = 2500 // a second
	muchLag      = 1000 // stream sequences that are yet to be dealt with: an import, or a replay
)

// demand returns a function that reports how much readers and the stream want the processors, by
// what has happened since it was last called. One goroutine at a time calls it.
func (l *live) demand() func() indexing.Demand {
	var at time.Time
	var requests, checkpoint uint64
	return func() indexing.Demand {
		count := l.requests.Load()
		if count == nil {
			return indexing.Some // nobody is answered yet, and what readers wait for is being loaded
		}
		lag, newest := l.look()
		now, n := time.Now(), (*count)()
		processors := min(runtime.GOMAXPROCS(0), runtime.NumCPU()) // there may be more threads
		if at.IsZero() {
			at, requests, checkpoint = now, n, newest
			return indexing.Some // not known yet
		}
		passed := now.Sub(at).Seconds()
		asked, changed := float64(n-requests)/passed, float64(newest-min(checkpoint, newest))/passed
		at, requests, checkpoint = now, n, newest
		switch {
		case (lag > muchLag || changed > muchChanges) && asked < someRequests:
			return indexing.Import
		case lag > muchLag, changed > muchChanges, asked > muchRequests*float64(processors):
			return indexing.Much
		case changed > someChanges, asked > someRequests:
			return indexing.Some
		}
		return indexing.None
	}
}

// filling reports whether the saved state is being loaded, or an import, a replay or a rebuild is
// under way.
func (l *live) filling() bool {
	p, running := l.progress()
	return !running || !p.CaughtUp || p.Lag > muchLag || l.rebuild.Load() != nil
}
