// Package task runs a function in a goroutine that its owner waits for. Tasks end one after another, each when
// its owner says so, whereas the tasks of an errgroup end together, at the first error.
package task

import (
	"context"
	"time"

	"example.org/registry/events/pause"
)

// Task is a running function. Any goroutine may call its methods.
type Task struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

// Go starts run, whose context ends with parent, or when Stop or Cancel is called.
func Go(parent context.Context, run func(context.Context) error) *Task {
	ctx, cancel := context.WithCancel(parent)
	t := &Task{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		defer cancel()
		t.err = run(ctx)
	}()
	return t
}

// Every calls do at once, and again when interval has passed after each call, until the task is stopped.
func Every(interval time.Duration, do func()) *Task {
	return Go(context.Background(), func(ctx context.Context) error {
		do()
		for pause.For(ctx, interval) {
			do()
		}
		return nil
	})
}

// Done returns a channel that is closed when the function has returned.
func (t *Task) Done() <-chan struct{} { return t.done }

// Cancel makes the function's context end and does not wait.
func (t *Task) Cancel() { t.cancel() }

// Wait waits for the function and returns its error.
func (t *Task) Wait() error {
	<-t.done
	return t.err
}

// Stop makes the function's context end, waits for it and returns its error.
func (t *Task) Stop() error {
	t.cancel()
	return t.Wait()
}
