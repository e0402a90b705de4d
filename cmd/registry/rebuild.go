package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

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
	aside, err := b.complete(ctx)
	if err != nil {
		_ = b.fresh.stop() // err says more
		return httpapi.Rebuilt{}, errors.Join(err, store.Discard())
	}
	rebuilt := b.outcome(aside)
	b.retire()
	return rebuilt, nil
}

// outcome is what has been done, told before the old generation ends.
func (b *rebuilding) outcome(aside string) httpapi.Rebuilt {
	return httpapi.Rebuilt{
		Before: stateOf(b.old), After: stateOf(b.fresh), Aside: aside,
		Events:                    b.fresh.projector.Progress().Applied,
		Seconds:                   time.Since(b.began).Seconds(),
		SubjectsWithoutValidEvent: append([]string{}, b.old.projector.Progress().SubjectsWithoutValidEvent...),
	}
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

func stateOf(r *running) httpapi.ModelState {
	doc := httpapi.ProjectionOf(r.model.View())
	p := r.projector.Progress()
	return httpapi.ModelState{StreamEpoch: p.Epoch, Checkpoint: doc.Checkpoint, Digest: doc.Digest, Entries: doc.Entries}
}
