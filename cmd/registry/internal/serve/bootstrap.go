package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/pause"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// loader loads the saved state at a start.
type loader struct {
	cfg  Config
	live *live
}

// loadStore loads the store and shows its model. If the store is missing or damaged, loadStore makes another
// one, from a snapshot or, if there is none, an empty one. To look for a snapshot, loadStore waits until connected
// delivers a connection to the broker.
func (l *loader) loadStore(ctx context.Context, connected <-chan jetstream.JetStream) error {
	path := l.cfg.storePath()
	// A crash may have left an unfinished store in the data directory.
	if err := snapshots.RemoveLeftovers(path); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}

	store, model, err := l.openStore(ctx, path)
	if err != nil {
		return err
	}

	if store == nil {
		if err := l.bootstrap(ctx, connected); err != nil {
			return err
		}
		store, model, err = snapshots.Open(ctx, path) // makes an empty store if bootstrap has made none
		if err != nil {
			return err
		}
	}

	l.live.showGeneration(newGeneration(generation{model: model, store: store}))
	return nil
}

// openStore opens the store. It returns nil if there is no store, or after it has set aside a damaged one.
func (l *loader) openStore(ctx context.Context, path string) (*snapshots.Store, *readmodel.Model, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	store, model, err := snapshots.Open(ctx, path)
	if !errors.Is(err, snapshots.ErrDamaged) {
		return store, model, err
	}

	aside, moveErr := snapshots.SetAside(path)
	if moveErr != nil {
		return nil, nil, errors.Join(err, moveErr)
	}
	l.cfg.Logger.Error("the store is damaged; it was renamed, and another is made", "error", err, "renamed", aside)
	return nil, nil, nil
}

// bootstrap makes a store from the newest readable snapshot of the stream's registry; the projector then
// applies what the stream has had since. Without a snapshot, bootstrap does nothing, and everything is replayed.
// It waits while the broker is away, since nothing can be served without the broker.
//
// If there are snapshots, one must be readable, and the stream must not be missing or empty. Otherwise bootstrap
// fails, since the server would report listed people as unknown.
func (l *loader) bootstrap(ctx context.Context, connected <-chan jetstream.JetStream) error {
	// The index of ranked search, if there is one, belongs to the lost store.
	if err := os.RemoveAll(l.cfg.rankedDir()); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}

	if l.cfg.SkipSnapshots {
		l.cfg.Logger.Warn("nothing is saved here; replaying the whole stream, as --skip-snapshots says")
		return nil
	}

	defer l.live.starting.Store(nil)
	l.live.starting.Store(new("nothing is saved here; waiting for the broker"))
	var js jetstream.JetStream
	select {
	case js = <-connected:
	case <-ctx.Done():
		return ctx.Err()
	}

	// If there are no snapshots, a replay of the stream gives everything that can be known.
	bucket := snapshots.NewBucket(js)
	info, all, err := l.findSnapshots(ctx, js, bucket)
	if err != nil || len(all) == 0 {
		return err
	}

	if info == nil || info.State.LastSeq == 0 {
		return l.refuseEmpty(all)
	}

	l.live.starting.Store(new("nothing is saved here; loading a snapshot"))
	err = bucket.Bootstrap(ctx, all, stream.IdentityOf(info), l.cfg.storePath(), l.cfg.Logger)
	if err != nil {
		return fmt.Errorf("no snapshot of the stream %s can be used (%w), and only they tell whether the stream has lost anything; "+
			"--skip-snapshots starts without them", l.cfg.Stream, err)
	}
	return nil
}

// findSnapshots asks for the stream and the snapshots until the broker has replied. info is nil if there is
// no stream, which is a reply, too.
func (l *loader) findSnapshots(ctx context.Context, js jetstream.JetStream, bucket *snapshots.Bucket) (info *jetstream.StreamInfo, all []snapshots.Object, err error) {
	for logged := false; ; logged = true {
		info, err = stream.Stream{JS: js, Name: string(l.cfg.Stream)}.Info(ctx)
		if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
			all, err = bucket.List(ctx)
		}
		if err == nil {
			return info, all, nil
		}

		if !logged {
			l.cfg.Logger.Warn("nothing is saved here, and the broker does not answer about the stream or its snapshots; waiting for it", "error", err)
		}
		l.live.starting.Store(new("nothing is saved here; waiting for the broker: " + err.Error()))
		if !pause.For(ctx, 250*time.Millisecond) {
			return nil, nil, ctx.Err()
		}
	}
}

// refuseEmpty returns an error if any of the snapshots, newest first, may have states of the stream, which is
// missing or empty.
func (l *loader) refuseEmpty(all []snapshots.Object) error {
	newest := slices.IndexFunc(all, func(o snapshots.Object) bool {
		isUnreadable := o.Err != nil
		hasStates := o.Header.Stream == string(l.cfg.Stream) && o.Header.Count > 0
		return isUnreadable || hasStates
	})
	if newest < 0 {
		return nil
	}

	return fmt.Errorf("the stream %s is missing or empty, and there are snapshots of it: people who are listed would be unknown; "+
		"to bring it back, start with --skip-snapshots, which alone serves an empty registry, and run registry recover %s", l.cfg.Stream, all[newest].Name)
}
