package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// background is work that readers wait for but do not own: one reader's leaving must not end what
// others wait for. Any goroutine may use it.
type background struct {
	ctx    context.Context // of the work; ends with close
	cancel context.CancelFunc
	logger *slog.Logger

	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

func newBackground(logger *slog.Logger) *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{ctx: ctx, cancel: cancel, logger: logger}
}

// start runs work in a goroutine; after close it returns false instead. A panic ends that work only.
func (b *background) start(work func(ctx context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.group.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				b.logger.Error("background work panicked", "error", fmt.Sprintf("panic: %v\n%s", v, debug.Stack()))
			}
		}()
		work(b.ctx)
	})
	return true
}

// close ends the work and waits for it.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.group.Wait()
}

var (
	// ErrClosed says that Services has been closed.
	ErrClosed = errors.New("upstream: closed")
	// errBusy says that as many flights as allowed are in the air.
	errBusy = errors.New("upstream: too many calls")
)

// flights shares running work by key: a call for a key that is in the air waits for that flight.
type flights[K comparable, V any] struct {
	work *background
	most int // flights at once

	mu      sync.Mutex
	running map[K]*flight[V]
}

// flight is one piece of running work. value is set before done is closed; it stays the zero value if
// the work panicked.
type flight[V any] struct {
	done  chan struct{}
	value V
}

func newFlights[K comparable, V any](work *background, most int) *flights[K, V] {
	return &flights[K, V]{work: work, most: most, running: map[K]*flight[V]{}}
}

// do returns the result of run, or of the flight for key that is in the air. Its errors: errBusy,
// ErrClosed, or ctx's, which ends the waiting and not the work.
func (f *flights[K, V]) do(ctx context.Context, key K, run func(context.Context) V) (value V, err error) {
	fl, err := f.join(key, run)
	if err != nil {
		return value, err
	}
	select {
	case <-fl.done:
		return fl.value, nil
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// join finds or starts the flight.
func (f *flights[K, V]) join(key K, run func(context.Context) V) (*flight[V], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.running[key]; fl != nil {
		return fl, nil
	}
	if len(f.running) >= f.most {
		return nil, errBusy
	}
	fl := &flight[V]{done: make(chan struct{})}
	if !f.work.start(func(ctx context.Context) { defer f.land(key, fl); fl.value = run(ctx) }) {
		return nil, ErrClosed
	}
	f.running[key] = fl
	return fl, nil
}

func (f *flights[K, V]) land(key K, fl *flight[V]) {
	f.mu.Lock()
	delete(f.running, key)
	f.mu.Unlock()
	close(fl.done)
}
