package httpapi

import (
	"errors"
	"sync"
	"time"
)

// How long a platform is left alone.
const (
	maxPause          = time.Hour // whatever it asks for
	minPause          = time.Second
	defaultPause      = 5 * time.Second // told to wait, but not how long
	unauthorisedPause = time.Minute
	longestBackOff    = time.Minute // for failures
	tolerated         = 2           // failures in a row that are taken for accidents
)

// backOff keeps the platform from being asked while it wishes not to be, and asks less of one
// that fails: from the third failure in a row for 1 s, then 2 s, up to a minute.
type backOff struct {
	clock monotonic

	mu       sync.Mutex
	until    time.Duration // nothing is asked before
	failures int           // in a row
	counted  time.Duration // when the last of them was
}

// now is the beginning of a call, or false while nothing is to be asked.
func (b *backOff) now() (began time.Duration, ask bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	began = b.clock.now()
	return began, began >= b.until
}

// note takes down what came of a call that began then. Calls that failed side by side count once.
func (b *backOff) note(began time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.now()
	var pause *Pause
	switch {
	case errors.As(err, &pause):
		b.until = max(b.until, now+pauseFor(pause.For))
	case err == nil, errors.Is(err, ErrNoPicture), errors.Is(err, ErrUnusable):
		b.failures = 0
	case b.failures == 0 || began >= b.counted:
		b.failures++
		b.counted = now
		if b.failures > tolerated {
			b.until = max(b.until, now+min(longestBackOff, minPause<<min(b.failures-tolerated-1, 10)))
		}
	}
}

func pauseFor(told time.Duration) time.Duration {
	if told <= 0 {
		told = defaultPause
	}
	return min(max(told, minPause), maxPause)
}
