package httpapi

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
)

// detached is work that readers wait for but do not own: one reader's leaving must not end what
// others wait for. Any goroutine may use it.
type detached struct {
	ctx    context.Context // of the work: ends with close
	cancel context.CancelFunc
	logger *slog.Logger

	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

func newDetached(logger *slog.Logger) *detached {
	ctx, cancel := context.WithCancel(context.Background())
	return &detached{ctx: ctx, cancel: cancel, logger: logger}
}

// start runs work in a goroutine; false after close. A panic costs that work and not the process.
func (d *detached) start(work func(ctx context.Context)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.group.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				d.logger.Error("work for readers failed", "error", (&panicError{v, debug.Stack()}).Error())
			}
		}()
		work(d.ctx)
	})
	return true
}

// close ends the work and waits for it.
func (d *detached) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.group.Wait()
}

// flights shares running work by key: whoever asks for what is already being done waits for that.
// It is x/sync/singleflight with three things more: an end that can be waited for, a bound on how
// much runs at once, and no panic that ends the process.
type flights[K comparable, V any] struct {
	work *detached
	most int // flights at once

	mu      sync.Mutex
	running map[K]*flight[V]
}

// flight is one piece of running work. value is set before done is closed, and stays the zero
// value where the work panicked.
type flight[V any] struct {
	done  chan struct{}
	value V
}

func newFlights[K comparable, V any](work *detached, most int) *flights[K, V] {
	return &flights[K, V]{work: work, most: most, running: map[K]*flight[V]{}}
}

// do is the result of run for key, or of the run for it that is on its way. Its errors: errBusy
// when too many run or the work is closed, or ctx's, which ends the waiting alone.
func (f *flights[K, V]) do(ctx context.Context, key K, run func(context.Context) V) (value V, err error) {
	fl := f.join(key, run)
	if fl == nil {
		return value, errBusy
	}
	select {
	case <-fl.done:
		return fl.value, nil
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// join finds or starts the flight; nil when it may not be started.
func (f *flights[K, V]) join(key K, run func(context.Context) V) *flight[V] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.running[key]; fl != nil {
		return fl
	}
	if len(f.running) >= f.most {
		return nil
	}
	fl := &flight[V]{done: make(chan struct{})}
	if !f.work.start(func(ctx context.Context) { defer f.land(key, fl); fl.value = run(ctx) }) {
		return nil
	}
	f.running[key] = fl
	return fl
}

func (f *flights[K, V]) land(key K, fl *flight[V]) {
	f.mu.Lock()
	delete(f.running, key)
	f.mu.Unlock()
	close(fl.done)
}
