package task

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Stop returns what the function returned, however often it is called.
func TestStop(t *testing.T) {
	late := errors.New("late")
	task := Go(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return late })
	for range 2 {
		if err := task.Stop(); !errors.Is(err, late) {
			t.Error(err)
		}
	}
}

// Every goes on until it is stopped, and does nothing after that.
func TestEvery(t *testing.T) {
	calls := make(chan struct{})
	task := Every(time.Millisecond, func() {
		select {
		case calls <- struct{}{}:
		case <-t.Context().Done():
		}
	})
	for range 3 {
		<-calls
	}
	go func() {
		for range calls {
		}
	}()
	if err := task.Stop(); err != nil {
		t.Error(err)
	}
	close(calls)
}
