// Package pause waits: a sleep that a context ends.
package pause

import (
	"context"
	"time"
)

// For waits for d and returns true, or false as soon as ctx ends. A d of 0 or less does not wait.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
