package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots/bucket"
)

const (
	// snapshotLook is how often the loop looks for the moment from which it may make snapshots.
	snapshotLook = 500 * time.Millisecond
	// snapshotGrace is how long after its start a server leaves the processors to the readers, and how
	// long it waits after a failure; --snapshot-every where that is less.
	snapshotGrace = time.Minute
)

// run makes snapshots unasked until ctx ends. Replicas of one stream make one in each interval between
// them: what counts is the age of the newest, whoever made it.
func (k *snapshotter) run(ctx context.Context) {
	if k.cfg.every <= 0 {
		return
	}
	for !k.mayBegin() {
		if !pauseFor(ctx, snapshotLook) {
			return
		}
	}
	last := ""
	for wait := min(k.cfg.every, snapshotGrace); pauseFor(ctx, wait); {
		var err error
		wait, err = k.turn(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			last = ""
			continue
		}
		wait = min(k.cfg.every, snapshotGrace)
		k.stats.failed(ctx)
		if err.Error() == last {
			continue
		}
		last = err.Error() // once for each reason
		if errors.Is(err, events.ErrRefused) {
			err = fmt.Errorf("%w; where another server makes the snapshots, give this one --snapshot-every 0", err)
		}
		k.log.Error("no snapshot was made; tried again in "+wait.String(), "error", err)
	}
}

// mayBegin is true once the model is complete.
func (k *snapshotter) mayBegin() bool {
	p, running := k.live.now().progress()
	return running && p.CaughtUp
}

// turn makes a snapshot if one is due, and says when to look again.
func (k *snapshotter) turn(ctx context.Context) (next time.Duration, err error) {
	at := k.live.now().store.Checkpoint()
	p, _ := k.live.now().progress()
	if !p.Connected || p.Frozen || p.Checkpoint == 0 {
		return min(k.cfg.every, snapshotGrace), nil // said elsewhere
	}
	newest, age, err := k.newest(ctx, at)
	if err != nil {
		return 0, err
	}
	switch {
	case newest == nil:
	case age < k.cfg.every:
		return k.cfg.every - age, nil
	case newest.Manifest.Sequence >= p.Checkpoint && newest.Bad == nil:
		return k.cfg.every, nil // nothing has changed
	}
	done, err := k.begin()
	if err != nil {
		return min(k.cfg.every, snapshotLook), nil // an operator is making one
	}
	defer done()
	_, err = k.put(ctx)
	if errors.Is(err, bucket.ErrBusy) {
		return min(k.cfg.every, snapshotGrace), nil // another replica is
	}
	return k.cfg.every, err
}

// newest is the newest snapshot of our stream, nil when there is none, and how old it is by the broker's clock.
func (k *snapshotter) newest(ctx context.Context, at readmodel.Checkpoint) (*bucket.Item, time.Duration, error) {
	items, now, err := k.bucket.Load().List(ctx)
	if errors.Is(err, bucket.ErrNone) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for _, i := range items {
		if i.Manifest.Stream == at.Stream.Name && i.Manifest.StreamEpoch == at.Stream.Epoch {
			k.stats.saw(i)
			return &i, now.Sub(i.Time), nil
		}
	}
	return nil, 0, nil
}

// pauseFor waits for d or the end of ctx, and says whether to go on.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
