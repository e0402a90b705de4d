package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"example.org/registry/httpapi"
)

// rebuilds is where operators' requests meet keep. One is dealt with at a time.
type rebuilds struct {
	asked chan *rebuildRequest
	ended chan struct{} // closed when nobody takes requests any more
	busy  atomic.Bool
}

func newRebuilds() *rebuilds {
	return &rebuilds{asked: make(chan *rebuildRequest), ended: make(chan struct{})}
}

type rebuildRequest struct {
	httpapi.RebuildOptions
	ctx     context.Context
	rebuilt httpapi.Rebuilt // set, as err, before done is closed
	err     error
	done    chan struct{}
}

// rebuild is what POST /rebuild does. It returns when the new model is shown, or when there will be none:
// the error is an httpapi.Refused, an httpapi.Unavailable, or what went wrong. When ctx ends the old
// model stays.
func (s *server) rebuild(ctx context.Context, options httpapi.RebuildOptions) (httpapi.Rebuilt, error) {
	if !s.rebuilds.busy.CompareAndSwap(false, true) {
		return httpapi.Rebuilt{}, httpapi.Refused("another rebuild is under way; wait for its end")
	}
	defer s.rebuilds.busy.Store(false)
	if _, running := s.live.progress(); !running {
		return httpapi.Rebuilt{}, httpapi.Unavailable("the saved state is still being loaded")
	}
	r := &rebuildRequest{RebuildOptions: options, ctx: ctx, done: make(chan struct{})}
	select {
	case s.rebuilds.asked <- r:
		<-r.done
		return r.rebuilt, r.err
	case <-s.rebuilds.ended:
		return httpapi.Rebuilt{}, httpapi.Unavailable("the server is stopping")
	case <-ctx.Done():
		return httpapi.Rebuilt{}, ctx.Err()
	}
}

var (
	errStopping = errors.New("the server is stopping")
	errOldEnded = errors.New("the projector has ended")
)

// answer deals with one request and returns the generation that is shown then.
func (s *server) answer(r *rebuildRequest, nc *nats.Conn, old *running, drained <-chan struct{}) *running {
	defer close(r.done)
	ctx, cancel := context.WithCancelCause(r.ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-drained:
			cancel(errStopping)
		case <-old.ended:
			cancel(errOldEnded)
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(nil); <-watched }()
	b := &rebuilding{server: s, options: r.RebuildOptions, nc: nc, old: old, unsaved: make(chan error, 1), began: time.Now()}
	r.rebuilt, r.err = b.run(ctx)
	b.report(r.rebuilt, r.err)
	if r.err != nil {
		return old
	}
	return b.fresh
}
