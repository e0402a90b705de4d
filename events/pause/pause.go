// Package pause implements a sleep that a context can end.
package pause

import (
	"context"
	"time"
)

// Until waits until a condition holds, which it checks at intervals of every. It returns false if ctx ends first.
func Until(ctx context.Context, every time.Duration, holds func() bool) bool {
	for !holds() {
		if !For(ctx, every) {
			return false
		}
	}
	return true
}

// For waits for d and returns true, or returns false as soon as ctx ends. If d is 0 or less, it
// does not wait.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
