package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/registry/events/failpoint"
	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
)

const (
	// joinWithin bounds the last step: the old model stands still until the new one stands beside it.
	joinWithin = 20 * time.Second
	// awayWithin is how long the broker may be away during a rebuild.
	awayWithin = 30 * time.Second
)

// complete catches up, judges, and puts the new generation in the place of the old one.
func (b *rebuilding) complete(ctx context.Context) (aside string, err error) {
	if err := b.beside(ctx); err != nil {
		return "", err
	}
	return b.swap(ctx)
}

// beside does most of it, while the old generation goes on.
func (b *rebuilding) beside(ctx context.Context) error {
	if err := failpoint.Hit("rebuild/begun"); err != nil {
		return err
	}
	if err := b.catchUp(ctx); err != nil {
		return err
	}
	if err := b.judge(); err != nil {
		return err
	}
	if err := b.save(ctx); err != nil {
		return err
	}
	return failpoint.Hit("rebuild/saved")
}

// swap takes the old generation standing still: the new one is beside it or further when readers come to it (promise 3).
func (b *rebuilding) swap(ctx context.Context) (aside string, err error) {
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
		if err := b.wait(ctx, tick.C); err != nil {
			return err
		}
	}
}

// wait lasts until the next look, or until something ends the rebuild.
func (b *rebuilding) wait(ctx context.Context, look <-chan time.Time) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-b.fresh.ended:
		return httpapi.Refused(b.fresh.err.Error())
	case err := <-b.unsaved:
		return fmt.Errorf("the new read model cannot be saved: %w", err)
	case <-look:
		return nil
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
