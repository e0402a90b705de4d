package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"example.org/registry/events"
	"example.org/registry/events/failpoint"
	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

const (
	// joinWithin bounds the last step: the old model stands still until the new one stands beside it.
	joinWithin = 20 * time.Second
	// awayWithin is how long the broker may be away during a rebuild.
	awayWithin = 30 * time.Second
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

// rebuilding is one rebuild under way.
type rebuilding struct {
	server     *server
	options    httpapi.RebuildOptions
	nc         *nats.Conn
	old, fresh *running
	unsaved    chan error // why the new store cannot be written; holds the first
	began      time.Time
}

// run builds a second generation beside the old one and shows it.
func (b *rebuilding) run(ctx context.Context) (httpapi.Rebuilt, error) {
	if err := b.permitted(); err != nil {
		return httpapi.Rebuilt{}, err
	}
	store, err := snapshots.Begin(snapshots.Config{Path: b.server.flags.storePath(), Logger: b.server.log})
	if err != nil {
		return httpapi.Rebuilt{}, err
	}
	b.begin(store)
	b.server.live.rebuild.Store(b)
	defer b.server.live.rebuild.Store(nil)
	if err := failpoint.Hit("rebuild/begun"); err != nil {
		_ = b.fresh.stop()
		return httpapi.Rebuilt{}, errors.Join(err, store.Discard())
	}
	aside, err := b.complete(ctx)
	if err != nil {
		_ = b.fresh.stop() // err says more
		return httpapi.Rebuilt{}, errors.Join(err, store.Discard())
	}
	rebuilt := httpapi.Rebuilt{
		Before: stateOf(b.old), After: stateOf(b.fresh), Aside: aside,
		Events:                    b.fresh.projector.Progress().Applied,
		Seconds:                   time.Since(b.began).Seconds(),
		SubjectsWithoutValidEvent: append([]string{}, b.old.projector.Progress().SubjectsWithoutValidEvent...),
	}
	b.retire()
	return rebuilt, nil
}

// permitted says what stands in the way before anything is done.
func (b *rebuilding) permitted() error {
	p := b.old.projector.Progress()
	switch {
	case !p.Connected:
		return httpapi.Unavailable("the broker cannot be reached; a rebuild reads the stream")
	case p.Frozen && !b.options.AcceptStream:
		return httpapi.Refused("frozen: " + p.LastError)
	case !p.CaughtUp && !p.Frozen:
		return httpapi.Unavailable("the read model has not caught up with the stream yet")
	}
	return b.enoughMemory()
}

// begin starts the replay. Without AcceptStream it takes no other stream than the old model's.
func (b *rebuilding) begin(store *snapshots.Store) {
	var saved readmodel.Checkpoint
	var known uint64
	if p := b.old.projector.Progress(); !b.options.AcceptStream {
		saved.Stream = readmodel.StreamIdentity{Name: p.Stream, Epoch: p.Epoch, Created: p.Created}
		known = p.Checkpoint
	}
	g := b.server.newGeneration(b.nc, store, watchedStore{store, b.unsaved}, readmodel.New(), saved, known)
	b.fresh = b.server.start(g)
}

// watchedStore tells of the first failure: a rebuild does not go on trying while the live store may
// need what is left of the disk.
type watchedStore struct {
	*snapshots.Store
	failed chan<- error
}

// Save is part of projector.Store.
func (w watchedStore) Save(c readmodel.Commit) error {
	err := w.Store.Save(c)
	if err != nil {
		select {
		case w.failed <- err:
		default:
		}
	}
	return err
}

// complete catches up, judges, and puts the new generation in the place of the old one. The last step takes
// the old one standing still: the new one is beside it or further when readers come to it (promise 3).
func (b *rebuilding) complete(ctx context.Context) (aside string, err error) {
	if err := b.catchUp(ctx); err != nil {
		return "", err
	}
	if err := b.judge(); err != nil {
		return "", err
	}
	if err := b.save(ctx); err != nil { // most of it, while the old one goes on
		return "", err
	}
	if err := failpoint.Hit("rebuild/saved"); err != nil {
		return "", err
	}
	at := b.old.projector.Hold(0)
	defer b.old.projector.Release()
	ctx, cancel := context.WithTimeoutCause(ctx, joinWithin, errors.New("the stream was too busy for the last step; try again"))
	defer cancel()
	if err := b.join(ctx, at); err != nil {
		return "", err
	}
	if aside, err = b.fresh.store.Replace(b.old.store); err != nil {
		return "", err
	}
	b.server.live.show(b.fresh.generation)
	return aside, nil
}

// catchUp waits until the new model has reached the end that the stream had when the replay began.
func (b *rebuilding) catchUp(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	connected := time.Now()
	for {
		p := b.fresh.projector.Progress()
		switch {
		case p.CaughtUp:
			return nil
		case p.Frozen:
			return httpapi.Refused("the stream is another one: " + p.LastError)
		case p.Connected:
			connected = time.Now()
		case time.Since(connected) > awayWithin:
			return httpapi.Unavailable("the broker went away")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.fresh.ended:
			return httpapi.Refused(b.fresh.err.Error())
		case err := <-b.unsaved:
			return fmt.Errorf("the new read model cannot be saved: %w", err)
		case <-tick.C:
		}
	}
}

// save gives the new store all that the new model has.
func (b *rebuilding) save(ctx context.Context) error {
	if err := b.fresh.projector.Flush(ctx); err != nil {
		return fmt.Errorf("the new read model: %w", errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

// join brings the new model to where the old one stands still, at, and judges and saves it as it is then. Where the stream is
// another one, accepted as it is, the checkpoint may go back: the only case.
func (b *rebuilding) join(ctx context.Context, at readmodel.Checkpoint) error {
	if old := b.old.projector.Progress(); !b.options.AcceptStream || !old.Frozen && old.Epoch == b.fresh.projector.Progress().Epoch {
		if err := b.old.projector.StillOurs(ctx); err != nil {
			return httpapi.Refused("the stream is not the one that was read: " + err.Error())
		}
		if _, err := b.fresh.model.Await(ctx, at.Sequence); err != nil {
			return context.Cause(ctx)
		}
	}
	if err := b.judge(); err != nil {
		return err
	}
	return b.save(ctx)
}

// retire ends the old generation, which nobody looks at any more.
func (b *rebuilding) retire() {
	if err := errors.Join(b.old.stop(), b.old.store.Close()); err != nil {
		b.server.log.Warn("the replaced read model did not end well; it is kept as it is", "error", err)
	}
}

// report tells the log.
func (b *rebuilding) report(r httpapi.Rebuilt, err error) {
	b.server.live.counted(err)
	if err != nil {
		b.server.log.Warn("rebuild given up; the read model of before is served", "error", err)
		return
	}
	b.server.log.Info("rebuilt; the new read model is served", "events", r.Events, "took", time.Since(b.began).Round(time.Millisecond).String(),
		"before", r.Before, "after", r.After, "aside", r.Aside)
}

// judge compares the two models as readers see them (API contract, registry rebuild).
func (b *rebuilding) judge() error {
	was, is := b.old.model.View(), b.fresh.model.View()
	all := 0
	for _, list := range events.Lists() {
		before, after := was.Entries(list), is.Entries(list)
		all += after
		if lost := before - after; lost*10 > before && !b.options.Yes {
			return httpapi.Refused(fmt.Sprintf("%s would go from %d entries to %d; publish what is missing (registry export, registry publish), "+
				"or repeat with --yes if that is right", list, before, after))
		}
	}
	if least := b.server.flags.MinEntries; all < least {
		return httpapi.Refused(fmt.Sprintf("%d entries in all, fewer than the %d of --min-entries", all, least))
	}
	return nil
}

func stateOf(r *running) httpapi.ModelState {
	doc := httpapi.ProjectionOf(r.model.View())
	p := r.projector.Progress()
	return httpapi.ModelState{StreamEpoch: p.Epoch, Checkpoint: doc.Checkpoint, Digest: doc.Digest, Entries: doc.Entries}
}
