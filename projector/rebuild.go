package projector

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

const (
	lookEvery = 20 * time.Millisecond // at the progress of another projector
	// awayWithin is how long the broker may be away during a rebuild or a replay.
	awayWithin = 30 * time.Second
)

// Why a rebuild does not begin, or is not swapped in.
var (
	// ErrKnowsMore means that it would forget states which the stream lacks.
	ErrKnowsMore = errors.New("the stream lacks states that this server knows; registry recover comes first")

	ErrFrozen = errors.New("frozen")
	ErrNotYet = errors.New("not now")
)

// CheckRebuild returns why a rebuild beside p must not begin, or nil.
func (p *Projector) CheckRebuild() error {
	now := p.Progress()
	if now.Frozen != "" {
		return fmt.Errorf("%w: %s", ErrFrozen, now.LastError)
	}
	if !now.Connected {
		return fmt.Errorf("%w: the stream cannot be reached, and a rebuild reads it", ErrNotYet)
	}
	if !now.CaughtUp || now.Reading {
		return fmt.Errorf("%w: the read model has not caught up with the stream yet", ErrNotYet)
	}
	if now.Rewound || now.Unpublished > 0 {
		return ErrKnowsMore
	}
	return nil
}

// NewBeside makes a projector that reads p's stream from its beginning into an empty model and its
// empty store.
func (p *Projector) NewBeside(model *readmodel.Model, store Store, mayWrite func() bool) *Projector {
	cfg := p.cfg
	cfg.Model, cfg.Store, cfg.Meta, cfg.MayWrite = model, store, snapshots.Meta{}, mayWrite
	cfg.LoggedUpTo = p.Progress().Checkpoint
	return New(cfg)
}

// Replace waits until fresh, which runs, has caught up with p, and then calls swap while neither
// applies anything. The states of both are then those of one moment, and fresh knows no state less
// than p: otherwise the error matches ErrKnowsMore, and swap is not called.
func (p *Projector) Replace(ctx context.Context, fresh *Projector, swap func() error) error {
	if err := p.awaitBeside(ctx, fresh); err != nil {
		return err
	}
	for {
		if err := fresh.Flush(ctx); err != nil {
			return err
		}
		if err := p.CheckRebuild(); err != nil {
			return err
		}
		done, err := p.replaceNow(fresh, swap)
		if done || err != nil {
			return err
		}
		if !pause.For(ctx, lookEvery) {
			return context.Cause(ctx)
		}
	}
}

// replaceNow calls swap if fresh is as far as p, and has saved that.
func (p *Projector) replaceNow(fresh *Projector, swap func() error) (done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh.mu.Lock()
	defer fresh.mu.Unlock()
	if fresh.meta.Epoch != p.meta.Epoch {
		return false, fmt.Errorf("%w: the stream has changed meanwhile; try again", ErrNotYet)
	}
	if fresh.meta.Sequence < p.meta.Sequence || fresh.savedVersion.Load() < fresh.version.Load() {
		return false, nil
	}
	if err := p.checkKnown(fresh); err != nil {
		return false, err
	}
	return true, swap()
}

// checkKnown compares every state of p with fresh's.
func (p *Projector) checkKnown(fresh *Projector) error {
	if p.cfg.Model.View().Digest() == fresh.cfg.Model.View().Digest() {
		return nil
	}
	missing, first := 0, ""
	err := p.cfg.Store.Each(func(snapshots.Meta, int) error { return nil }, func(state snapshots.State) error {
		e, err := events.Decode(state.Line)
		if err != nil {
			return err
		}
		if k := e.Data.Subject(); fresh.cfg.Model.Known(k) < events.Revision(e.Data) {
			if missing++; missing == 1 {
				first = k.Masked()
			}
		}
		return nil
	})
	if err == nil && missing > 0 {
		err = fmt.Errorf("%w: %d, such as that of %s", ErrKnowsMore, missing, first)
	}
	return err
}

// awaitBeside waits until fresh has caught up, and the stream is still p's.
func (p *Projector) awaitBeside(ctx context.Context, fresh *Projector) error {
	connected := time.Now()
	for {
		now, unsaved := fresh.Progress(), fresh.tracker.sentence(troubleStore)
		switch {
		case unsaved != "":
			return errors.New("the new read model cannot be saved: " + unsaved)
		case now.Frozen != "":
			return fmt.Errorf("%w: %s", ErrFrozen, now.LastError)
		case now.CaughtUp:
			return nil
		case now.Connected:
			connected = time.Now()
		case time.Since(connected) > awayWithin:
			return fmt.Errorf("%w: the broker went away", ErrNotYet)
		}
		if !pause.For(ctx, lookEvery) {
			return context.Cause(ctx)
		}
	}
}

// Replay reads the stream from its beginning into a new store in dir, until the end that the stream
// has now. It leaves no trace at the broker. The caller closes the store. progress may be nil.
func Replay(ctx context.Context, js jetstream.JetStream, name, dir string, progress func(done, total uint64)) (*snapshots.Store, error) {
	store, model, err := snapshots.Open(ctx, filepath.Join(dir, "replay.db"))
	if err != nil {
		return nil, err
	}
	p := New(Config{JetStream: js, Stream: name, ReadOnly: true, Model: model, Store: store})
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(running) }()

	err = p.awaitReplay(ctx, ended, progress)
	cancel()
	if failed := <-ended; err == nil {
		err = failed
	}
	if err == nil && p.savedVersion.Load() < p.version.Load() {
		err = errors.New("the replay cannot be saved: " + p.Progress().LastError)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

func (p *Projector) awaitReplay(ctx context.Context, ended chan error, progress func(done, total uint64)) error {
	moved, last := time.Now(), uint64(0)
	for {
		now := p.Progress()
		if now.Done > last {
			moved, last = time.Now(), now.Done
		}
		if progress != nil && now.Total > 0 {
			progress(now.Done, now.Total)
		}
		switch {
		case now.CaughtUp:
			return nil
		case now.Frozen != "":
			return errors.New(now.LastError)
		case time.Since(moved) > awayWithin:
			silent := natserr.Explain(p.cfg.JetStream.Conn(), context.DeadlineExceeded, jetstream.DefaultAPIPrefix)
			return fmt.Errorf("the replay of the stream does not go on: %w", silent)
		}
		select {
		case err := <-ended:
			ended <- err
			return err
		default:
		}
		if !pause.For(ctx, lookEvery) {
			return context.Cause(ctx)
		}
	}
}
