package serve

import (
	"context"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events/pause"
	"example.org/registry/snapshots"
)

const (
	// eraseEvery is how often the store's free pages are erased, or --keep-set-aside if that is
	// shorter.
	eraseEvery = time.Hour
	// remainsLook is how often the server checks for work.
	remainsLook = time.Minute
)

// remains erases deleted text that is left on this server's disk
// (deploy/erasing.md). One goroutine uses it.
type remains struct {
	server *server

	dataSet string    // of the store erased last
	saved   uint64    // its checkpoint at that time
	erased  time.Time // time of the last erasure; zero before the first
	trouble string    // the last logged problem
}

// endRemains erases deleted text regularly until the task is stopped.
func (s *server) endRemains() *task.Task {
	r := &remains{server: s}
	return task.Go(context.Background(), func(ctx context.Context) error {
		for pause.For(ctx, min(remainsLook, s.cfg.KeepSetAside)) {
			r.end(ctx)
		}
		return nil
	})
}

// end erases the free pages of the store and removes files that were renamed aside long ago.
func (r *remains) end(ctx context.Context) {
	err := r.erase(ctx)
	if err == nil {
		err = snapshots.RemoveSetAside(r.server.cfg.storePath(), time.Now().Add(-r.server.cfg.KeepSetAside), !r.goodStore(), r.server.log)
	}
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		r.trouble = ""
	} else if r.trouble != err.Error() {
		r.trouble = err.Error()
		r.server.log.Warn("what is left of deleted text cannot be removed; trying again in a minute", "error", cli.Advise(err))
	}
}

// erase erases the free pages of a store that has been saved since the last erasure.
func (r *remains) erase(ctx context.Context) error {
	store := r.server.live.current().store
	dataSet, saved := store.DataSet(), store.Checkpoint().Sequence
	if dataSet == r.dataSet && (saved == r.saved || time.Since(r.erased) < min(eraseEvery, r.server.cfg.KeepSetAside)) {
		return nil
	}
	done, err := store.EraseFree(ctx, snapshots.ArchiveConfig{Rest: r.server.pacer.Rest})
	if done {
		r.dataSet, r.saved, r.erased = dataSet, saved, time.Now()
		r.server.live.erased.Store(new(r.erased))
	}
	return err
}

// goodStore reports whether the model is complete and saved.
func (r *remains) goodStore() bool {
	g := r.server.live.current()
	p, _ := g.progress()
	return p.CaughtUp && !p.Frozen() && p.Saved > 0 && g.store.Probe() == nil
}
