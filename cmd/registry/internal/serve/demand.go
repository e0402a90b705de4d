package serve

import "time"

const (
	// The server is busy above these rates of requests or changes a second. A request of a list
	// takes about 30 µs of CPU time, a first search a millisecond.
	busyRequests = 10
	busyChanges  = 500

	// muchLag is how many unprocessed stream sequences mean an import, or a replay.
	muchLag = 1000
)

// busy returns a function that reports whether clients or the stream need the CPUs, by the activity
// since its last call. One goroutine at a time may call it.
func (l *live) busy() func() bool {
	var at time.Time
	var requests, checkpoint uint64
	return func() bool {
		count := l.requests.Load()
		if count == nil {
			return true // no request is served yet, and clients wait for the load
		}
		lag, newest := l.lagAndCheckpoint()
		now, n := time.Now(), (*count)()
		passed := now.Sub(at).Seconds()
		asked, changed := float64(n-requests)/passed, float64(newest-min(checkpoint, newest))/passed
		first := at.IsZero()
		at, requests, checkpoint = now, n, newest
		return first || lag > muchLag || changed > busyChanges || asked > busyRequests
	}
}
