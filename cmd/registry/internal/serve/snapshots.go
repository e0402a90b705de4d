package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector"
	"example.org/registry/snapshots"
)

const (
	// flushWithin bounds the time for saving what has been applied.
	flushWithin = 10 * time.Second
	// snapshotGrace is the wait before the first snapshot, which leaves the CPUs to clients after a start, and the
	// wait after a failure. A shorter --snapshot-every shortens both.
	snapshotGrace = time.Minute
)

// snapshotter makes snapshots and exports of the running server, one at a time. Any goroutine may
// use it.
type snapshotter struct {
	cfg    Config
	live   *live
	bucket atomic.Pointer[snapshots.Bucket] // nil until there is a connection to the broker
	making sync.Mutex                       // held while a snapshot is being made

	// For the metrics.
	newest atomic.Pointer[snapshots.Object] // of our stream, by any replica; nil if none is known
	made   atomic.Uint64                    // by this process
}

// run makes snapshots at intervals until ctx ends. The interval begins with the newest snapshot of the
// stream, whichever replica made it.
func (k *snapshotter) run(ctx context.Context) error {
	if k.cfg.SnapshotEvery <= 0 {
		return nil
	}

	isCaughtUp := func() bool { return k.progress().CaughtUp }
	if !pause.Until(ctx, catchUpEvery, isCaughtUp) {
		return nil
	}

	wait := k.shortWait()
	for pause.For(ctx, wait) {
		next, err := k.makeIfDue(ctx)
		if errors.Is(err, natserr.ErrRefused) {
			next = k.cfg.SnapshotEvery
			err = fmt.Errorf("%w; where another server makes the snapshots, give this one --snapshot-every 0", err)
		}

		if err != nil && ctx.Err() == nil {
			k.cfg.Logger.Error("snapshot failed; retrying", "error", err, "after", next.String())
		}
		wait = next
	}
	return nil
}

// progress returns the projector's progress; without a projector, it is zero.
func (k *snapshotter) progress() projector.Progress {
	p, _ := k.live.current().progress()
	return p
}

func (k *snapshotter) shortWait() time.Duration { return min(k.cfg.SnapshotEvery, snapshotGrace) }

// makeIfDue makes a snapshot if one is due, and returns when to check again.
func (k *snapshotter) makeIfDue(ctx context.Context) (next time.Duration, err error) {
	p := k.progress()
	canSnapshot := p.Connected && p.Frozen == "" && !p.Reading && p.Checkpoint > 0
	if !canSnapshot {
		return k.shortWait(), nil // no error: the reason is reported elsewhere
	}

	newest, err := k.findNewest(ctx)
	if err != nil {
		return k.shortWait(), err
	}

	// No snapshot is due if nothing has changed, or if another replica has just made one.
	if newest != nil {
		unchanged := newest.Header.Digest == k.live.View().Digest().String() && newest.Header.Epoch == p.Epoch
		if unchanged {
			return k.cfg.SnapshotEvery, nil
		}
		age := time.Since(newest.Time) // negative if a clock is wrong
		if age >= 0 && age < k.cfg.SnapshotEvery {
			return k.cfg.SnapshotEvery - age, nil
		}
	}

	if _, err := k.uploadSnapshot(ctx); err != nil {
		return k.shortWait(), err
	}
	return k.cfg.SnapshotEvery, nil
}

// findNewest returns the newest readable snapshot of the registry, or nil, and notes it for the metrics.
func (k *snapshotter) findNewest(ctx context.Context) (*snapshots.Object, error) {
	all, err := k.bucket.Load().List(ctx)
	if err != nil {
		return nil, err
	}

	p := k.progress()
	for i := range all {
		if all[i].Err == nil && p.Related(all[i].Header.Identity) {
			k.newest.Store(&all[i])
			return &all[i], nil
		}
	}
	return nil, nil
}

// uploadSnapshot puts a snapshot into the object store, and deletes old ones there.
func (k *snapshotter) uploadSnapshot(ctx context.Context) (made snapshots.Object, err error) {
	k.making.Lock()
	defer k.making.Unlock()

	bucket := k.bucket.Load()
	p := k.progress()
	if bucket == nil || !p.Connected {
		return made, admin.Unavailable("the broker and its object store cannot be reached; snapshot create --output FILE needs neither")
	}

	store, err := k.flushStore(ctx)
	if err != nil {
		return made, err
	}

	if store.Meta().Sequence == 0 {
		return made, admin.Unavailable("the stream has no events yet, or is being read again; try again later")
	}

	began := time.Now()
	if err := bucket.Ensure(ctx, k.cfg.StreamReplicas); err != nil {
		return made, fmt.Errorf("object store: %w", cli.Advise(err))
	}
	if made, err = bucket.Put(ctx, store); err != nil {
		return made, fmt.Errorf("object store: %w", cli.Advise(err))
	}

	k.newest.Store(&made)
	k.made.Add(1)
	k.cfg.Logger.Info("snapshot made", "name", made.Name, "sequence", made.Header.Sequence, "digest", made.Header.Digest,
		"bytes", made.Bytes, "took", time.Since(began).Round(time.Millisecond).String())

	// The snapshot has been made, so a failure to erase old ones is only logged.
	removed, err := bucket.Prune(ctx, p.Identity, k.cfg.SnapshotKeep)
	if err != nil {
		k.cfg.Logger.Warn("old snapshots were not erased", "error", err)
	}
	if len(removed) > 0 {
		k.cfg.Logger.Info("old snapshots erased", "names", removed)
	}
	return made, nil
}

// flushStore saves all applied events, and returns the store. It fails until the model has caught up.
func (k *snapshotter) flushStore(ctx context.Context) (*snapshots.Store, error) {
	g := k.live.current()
	if p, _ := g.progress(); !p.CaughtUp {
		return nil, admin.Unavailable("the server has not caught up with the stream yet; try again when registry ready says so")
	}

	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := g.projector.Flush(ctx); err != nil {
		return nil, admin.Unavailable(err.Error())
	}
	return g.store, nil
}

// Created is the response to POST /snapshots.
type Created struct {
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"` // as stored
	snapshots.Header
}

// Create puts a snapshot at the checkpoint into the object store, for an operator.
func (k *snapshotter) Create(ctx context.Context) (any, error) {
	made, err := k.uploadSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	return Created{Name: made.Name, Bytes: made.Bytes, Header: made.Header}, nil
}

// Export writes the store's content at the checkpoint. It calls begin before the first byte.
func (k *snapshotter) Export(ctx context.Context, w io.Writer, begin func()) error {
	store, err := k.flushStore(ctx)
	if err != nil {
		return err
	}
	_, err = snapshots.Write(ctx, store, w, func(snapshots.Header) { begin() })
	return err
}
