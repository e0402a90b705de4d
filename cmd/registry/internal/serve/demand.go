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

// changeRate returns a function that reports how many stream sequences a second have been dealt with
// since it was last called. One goroutine at a time calls it.
func (l *live) changeRate() func() float64 {
	at := time.Now()
	_, checkpoint := l.look()
	return func() float64 {
		_, newest := l.look()
		now := time.Now()
		changed := float64(newest-min(checkpoint, newest)) / now.Sub(at).Seconds()
		at, checkpoint = now, newest
		return changed
	}
}

// demand returns a function that reports how much readers and the stream want the processors, by
// what has happened since it was last called. One goroutine at a time calls it.
func (l *live) demand() func() indexing.Demand {
	var at time.Time
	var requests uint64
	rate := l.changeRate()
	return func() indexing.Demand {
		count := l.requests.Load()
		if count == nil {
			return indexing.Some // nobody is answered yet, and what readers wait for is being loaded
		}
		lag, _ := l.look()
		now, n, changed := time.Now(), (*count)(), rate()
		processors := min(runtime.GOMAXPROCS(0), runtime.NumCPU()) // there may be more threads
		if at.IsZero() {
			at, requests = now, n
			return indexing.Some // not known yet
		}
		asked := float64(n-requests) / now.Sub(at).Seconds()
		at, requests = now, n
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
