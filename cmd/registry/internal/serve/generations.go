package serve

import (
	"context"
	"runtime/debug"
	"time"

	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events/pause"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/ranked"
	"example.org/registry/snapshots"
)

// newGeneration makes a projector for a model and its store, which it saves through saver. saved is
// the checkpoint of both. Rejected events up to known have been logged.
func (s *server) newGeneration(store *snapshots.Store, saver projector.Store,
	model *readmodel.Model, saved readmodel.Checkpoint, known uint64) *generation {
	var made *generation
	g := generation{
		model: model,
		store: store,
		projector: projector.New(projector.Config{
			JetStream:  s.live.stream.Load().JS,
			Stream:     s.cfg.Stream,
			Replicas:   s.cfg.StreamReplicas,
			History:    s.cfg.StreamHistory,
			Erase:      func() bool { return s.mayErase(made) },
			Markers:    s.cfg.embedded(),
			Demo:       s.cfg.Demo,
			Model:      model,
			Store:      saver,
			Saved:      saved,
			Owed:       store.Owed(),
			AcceptLoss: s.cfg.AcceptLoss,
			LoggedUpTo: known,
			Logger:     s.log,

			StartupTimeout: patienceAfter(time.Since(s.cfg.Began)),
		}),
	}
	if s.cfg.RankedIndex {
		g.ranked = &ranked.Engine{Dir: s.cfg.rankedDir(), Pacer: s.pacer, Logger: s.log, EraseAfter: 24 * time.Hour}
	}
	made = newGeneration(g)
	return made
}

// mayErase reports whether g may purge the messages before tombstones. In a cluster only the
// writing role may, and only if no generation before g is served, since a rebuild may still be
// refused.
func (s *server) mayErase(g *generation) bool {
	return (s.cfg.embedded() || s.cfg.SnapshotEvery > 0) && s.live.current() == g
}

// patienceAfter returns how long the projector may still wait for the broker before it serves the
// saved state. Clients get that state 10 s after the start at the latest
// (httpapi/CONTRACT.md#readiness): the projector asks twice a second, and each request may take 2 s
// to fail. If loading the store took long, 2 s are left.
func patienceAfter(sinceStart time.Duration) time.Duration {
	return max(7*time.Second-sinceStart, 2*time.Second)
}

// running is a generation with its running projector, and its indexes once they are started. One
// goroutine uses it, but any may call ended.
type running struct {
	*generation
	following *task.Task
	indexing  []*task.Task // empty if not started
}

// start runs the projector of g. The caller stops it.
func start(g *generation) *running {
	return &running{generation: g, following: task.Go(context.Background(), g.projector.Run)}
}

// ended returns a channel that is closed when the projector has ended by itself or was stopped.
func (r *running) ended() <-chan struct{} { return r.following.Done() }

// stop ends the indexes, the projector, which saves what it has applied, and the model's goroutine. It
// returns the projector's error.
func (r *running) stop(s *server) error {
	defer r.model.Close()
	for _, t := range r.indexing {
		t.Cancel()
	}
	bound := time.After(indexStops)
	for _, t := range r.indexing {
		select {
		case <-t.Done():
		case <-bound:
			s.log.Warn("an index does not stop; leaving it")
			return r.following.Stop()
		}
	}
	return r.following.Stop()
}

const (
	// indexAfter is how often an index checks whether the model has caught up. Until then the load,
	// which clients wait for, gets the CPUs.
	indexAfter = 50 * time.Millisecond
	// indexStops bounds the wait for the indexes when the process stops. Each is a cache that the
	// next start can rebuild, and a disk can block forever.
	indexStops = 5 * time.Second
)

// index runs the index of ranked search, if there is one, once the model has caught up.
func (r *running) index() {
	if r.ranked != nil {
		r.onceCaughtUp(func(ctx context.Context) {
			r.ranked.Run(ctx, r.model, ranked.Identity{StreamEpoch: r.projector.Progress().StreamEpoch, DataSet: r.store.DataSet()})
		})
	}
	// Loading and indexing leave about as much garbage as the model is large, which an idle server
	// would keep.
	r.onceCaughtUp(func(context.Context) { debug.FreeOSMemory() })
}

// onceCaughtUp calls run once the model has caught up.
func (r *running) onceCaughtUp(run func(context.Context)) {
	r.indexing = append(r.indexing, task.Go(context.Background(), func(ctx context.Context) error {
		for !r.projector.Status().CaughtUp {
			if !pause.For(ctx, indexAfter) {
				return nil
			}
		}
		run(ctx)
		return nil
	}))
}

// follow updates the current generation until the handlers have drained, and replaces it when an
// operator requests a rebuild.
func (s *server) follow(drained <-chan struct{}, current *running) error {
	defer close(s.rebuilds.closed)
	current.index()
	var remade time.Time // time of the last attempt
	for {
		next := current
		select {
		case <-drained:
			return current.stop(s)
		case <-current.ended():
			return current.stop(s)
		case request := <-s.rebuilds.requests:
			next = s.answer(request, current, drained)
		case store := <-s.damaged:
			if store == current.store && time.Since(remade) > remakeEvery { // otherwise the next failing save asks again
				next = s.remake(current, drained)
				remade = time.Now()
			}
		}
		if next != current { // otherwise the old one continues, with its index
			current = next
			current.index()
		}
	}
}
