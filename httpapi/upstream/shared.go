package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/singleflight"
)

// background is work that clients wait for but do not own: if one client disconnects, the work for
// the others goes on. Any goroutine may use it.
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

// do runs work, which close waits for. After close it returns ErrClosed instead. A panic only ends
// that work.
func (b *background) do(work func(ctx context.Context)) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	b.group.Add(1)
	b.mu.Unlock()
	defer b.group.Done()
	defer func() {
		if v := recover(); v != nil {
			b.logger.Error("background work panicked", "error", fmt.Sprintf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	work(b.ctx)
	return nil
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
	// ErrClosed means that Services has been closed.
	ErrClosed = errors.New("upstream: closed")
	// errBusy means that the maximum amount of work is running.
	errBusy = errors.New("upstream: too many calls")
)

// shared runs work once for all callers that ask for its key while it runs.
type shared[V any] struct {
	work    *background
	slots   chan struct{} // one for each piece of concurrent work
	running singleflight.Group
}

func newShared[V any](work *background, most int) *shared[V] {
	return &shared[V]{work: work, slots: make(chan struct{}, most)}
}

// do returns the result of run, or of the work already running for key, or the zero value if that
// panicked. Its errors: errBusy, ErrClosed, or ctx's, which ends the wait and not the work.
func (s *shared[V]) do(ctx context.Context, key string, run func(context.Context) V) (value V, err error) {
	result := s.running.DoChan(key, func() (any, error) {
		var made V
		select {
		case s.slots <- struct{}{}:
		default:
			return made, errBusy
		}
		defer func() { <-s.slots }()
		err := s.work.do(func(ctx context.Context) { made = run(ctx) })
		return made, err
	})
	select {
	case r := <-result:
		return r.Val.(V), r.Err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}
