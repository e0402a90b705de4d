package serve

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events/pause"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/ranked"
	"example.org/registry/snapshots"
)

// generation is a read model with everything that belongs to it. A rebuild makes another generation.
// Its parts never change; one goroutine at a time starts and stops it.
type generation struct {
	model     *readmodel.Model
	store     *snapshots.Store     // nil during the load of the saved state
	projector *projector.Projector // nil until there is a connection to the broker
	ranked    *ranked.Engine       // nil without ranked search

	replaced context.Context // ends when another generation is shown
	replace  context.CancelFunc

	following *task.Task
	indexing  []*task.Task // empty if not started
}

func newGeneration(g generation) *generation {
	g.replaced, g.replace = context.WithCancel(context.Background())
	return &g
}

// newGeneration makes a generation of a model and its store, with the projector that makeProjector
// makes.
func (s *server) newGeneration(model *readmodel.Model, store *snapshots.Store, makeProjector func(mayWrite func() bool) *projector.Projector) *generation {
	g := newGeneration(generation{model: model, store: store, ranked: &ranked.Engine{Dir: s.cfg.rankedDir(), Logger: s.log}})
	g.projector = makeProjector(func() bool { return s.mayWrite(g) })
	return g
}

// mayWrite reports whether g may write into the stream. In a cluster only the role that makes snapshots
// may, and only if no generation before g is served, since a rebuild may still be refused.
func (s *server) mayWrite(g *generation) bool {
	return (s.cfg.embedded() || s.cfg.SnapshotEvery > 0) && s.live.current() == g
}

// firstGeneration returns the generation of the saved state.
func (s *server) firstGeneration(model *readmodel.Model, store *snapshots.Store) *generation {
	return s.newGeneration(model, store, func(mayWrite func() bool) *projector.Projector {
		at := s.live.stream.Load()
		return projector.New(projector.Config{
			JetStream: at.JS, Stream: at.Name, Replicas: s.cfg.StreamReplicas, History: s.cfg.StreamHistory,
			MayWrite: mayWrite, Demo: s.cfg.Demo, Model: model, Store: store, Meta: store.Meta(), Logger: s.log,
			StartupTimeout: patienceAfter(time.Since(s.cfg.Began)),
		})
	})
}

// patienceAfter returns how long the projector may still wait for the broker before it serves the
// saved state. Clients get that state 10 s after the start at the latest: the projector asks twice a
// second, and each request may take 2 s to fail. If loading the store took long, 2 s are left.
func patienceAfter(sinceStart time.Duration) time.Duration {
	return max(7*time.Second-sinceStart, 2*time.Second)
}

// progress returns the projector's progress, or false if there is no projector.
func (g *generation) progress() (projector.Progress, bool) {
	if g.projector == nil {
		return projector.Progress{}, false
	}
	return g.projector.Progress(), true
}

// await waits for a sequence of this generation. It fails if another one is shown first.
func (g *generation) await(ctx context.Context, seq uint64) (*readmodel.View, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.replaced, cancel)()
	return g.model.Await(ctx, seq)
}

// rankedState returns the sequence that the index of ranked search covers, 0 if there is none, and
// its problem.
func (g *generation) rankedState() (sequence uint64, trouble string) {
	if g.ranked == nil {
		return 0, ""
	}
	return g.ranked.Sequence(), g.ranked.Problem()
}

// start runs the projector.
func (g *generation) start() { g.following = task.Go(context.Background(), g.projector.Run) }

// indexStops bounds the wait for the indexes when the process stops. Each is a cache that the next
// start can rebuild, and a disk can block forever.
const indexStops = 5 * time.Second

// stop ends the indexes, the projector, which saves what it has applied, and the model's goroutine. It
// returns the projector's error.
func (g *generation) stop(log *slog.Logger) error {
	defer g.model.Close()
	for _, t := range g.indexing {
		t.Cancel()
	}
	bound := time.After(indexStops)
	for _, t := range g.indexing {
		select {
		case <-t.Done():
		case <-bound:
			log.Warn("an index does not stop; leaving it")
			return g.following.Stop()
		}
	}
	return g.following.Stop()
}

// startIndexing runs the indexes, if there are any, once the model has caught up.
func (g *generation) startIndexing(s *server) {
	if g.ranked != nil {
		g.onceCaughtUp(func(ctx context.Context) { g.ranked.Run(ctx, g.model) })
	}
	// Loading and indexing leave about as much garbage as the model is large, which an idle server
	// would keep.
	g.onceCaughtUp(func(context.Context) { debug.FreeOSMemory() })
}

// indexAfter is how often an index checks whether the model has caught up. Until then the load,
// which clients wait for, gets the CPUs.
const indexAfter = 50 * time.Millisecond

// onceCaughtUp calls run once the model has caught up.
func (g *generation) onceCaughtUp(run func(context.Context)) {
	g.indexing = append(g.indexing, task.Go(context.Background(), func(ctx context.Context) error {
		for !g.projector.Status().CaughtUp {
			if !pause.For(ctx, indexAfter) {
				return nil
			}
		}
		run(ctx)
		return nil
	}))
}

// follow waits until the handlers have drained, or the projector has ended by itself, and then stops
// the generation that is shown.
func (s *server) follow(drained <-chan struct{}) error {
	for {
		g := s.live.current()
		select {
		case <-g.replaced.Done():
			continue
		case <-g.following.Done():
			if g.replaced.Err() != nil {
				continue
			}
		case <-drained:
		}
		break
	}

	s.cancel()
	s.rebuilding.Lock() // until a rebuild has ended; none begins any more
	defer s.rebuilding.Unlock()
	return s.live.current().stop(s.log)
}
