package serve

import (
	"time"
)

const (
	// More requests or changes a second than these make the server busy. A request of a list takes
	// about 30 µs of CPU time, a first search a millisecond.
	busyRequests = 10
	busyChanges  = 500

	// More of these are an import, or a replay.
	muchChanges = 2500 // a second
	muchLag     = 1000 // stream sequences that are yet to be dealt with
)

// busy returns a function that reports whether readers or the stream want the CPUs, by what has
// happened since it was last called. One goroutine at a time calls it.
func (l *live) busy() func() bool {
	var at time.Time
	var requests, checkpoint uint64
	return func() bool {
		count := l.requests.Load()
		if count == nil {
			return true // no request is answered yet, and what clients wait for is being loaded
		}
		lag, newest := l.look()
		now, n := time.Now(), (*count)()
		passed := now.Sub(at).Seconds()
		asked, changed := float64(n-requests)/passed, float64(newest-min(checkpoint, newest))/passed
		first := at.IsZero()
		at, requests, checkpoint = now, n, newest
		return first || lag > muchLag || changed > busyChanges || asked > busyRequests
	}
}
