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

// generation is a read model with everything that belongs to it. Once it is shown, its model, store, projector
// and index stay the same: a rebuild makes another generation. One goroutine at a time starts or stops it.
type generation struct {
	model     *readmodel.Model
	store     *snapshots.Store     // nil during the load of the saved state
	projector *projector.Projector // nil until there is a connection to the broker
	ranked    *ranked.Engine       // the index of ranked search; nil without a projector

	replaced context.Context // ends when another generation is shown
	replace  context.CancelFunc

	following *task.Task // runs the projector
	indexing  *task.Task // runs the index; nil if not started
}

// newGeneration completes g with the context that ends when another generation replaces it.
func newGeneration(g generation) *generation {
	g.replaced, g.replace = context.WithCancel(context.Background())
	return &g
}

// indexedGeneration makes a generation with an index of ranked search. The caller adds the projector.
func (s *server) indexedGeneration(model *readmodel.Model, store *snapshots.Store) *generation {
	return newGeneration(generation{model: model, store: store, ranked: &ranked.Engine{Dir: s.cfg.rankedDir(), Logger: s.log}})
}

// mayWrite reports whether g may write into the stream. A generation that is not served yet may not write, since
// its rebuild may still be refused. On a shared broker, only the server that makes snapshots may write
// (deploy/cluster.md#who-may-do-what).
func (s *server) mayWrite(g *generation) bool {
	isWriter := s.cfg.IsEmbedded() || s.cfg.SnapshotEvery > 0
	return isWriter && s.live.current() == g
}

// firstGeneration returns the generation of the saved state.
func (s *server) firstGeneration(model *readmodel.Model, store *snapshots.Store) *generation {
	g := s.indexedGeneration(model, store)
	eventStream := s.live.stream.Load()
	g.projector = projector.New(projector.Config{
		JetStream: eventStream.JS, Stream: eventStream.Name, Replicas: s.cfg.StreamReplicas, History: int(s.cfg.StreamHistory),
		MayWrite: func() bool { return s.mayWrite(g) }, Demo: s.cfg.Demo, Model: model, Store: store, Meta: store.Meta(), Logger: s.log,
		StartupTimeout: patienceAfter(time.Since(s.began)),
	})
	return g
}

// patienceAfter returns how long the projector may still wait for the broker before it serves the saved state.
// Clients should get that state within 10 s of the start. The projector waits until 7 s after the start, since its
// last request may take 2 s more to fail. If loading has taken longer than that, it still waits for 2 s.
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

// await waits for a sequence of this generation. It fails if another generation is shown first.
func (g *generation) await(ctx context.Context, seq uint64) (*readmodel.View, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.replaced, cancel)() // the deferred call ends the watch of g.replaced
	return g.model.Await(ctx, seq)
}

// rankedState returns the sequence up to which the index of ranked search covers the view, and the problem of the
// index. Both are zero without an index.
func (g *generation) rankedState(view *readmodel.View) (seq uint64, problem string) {
	if g.ranked == nil {
		return 0, ""
	}
	return min(g.ranked.Sequence(), view.Sequence()), g.ranked.Problem()
}

// start runs the projector.
func (g *generation) start() { g.following = task.Go(context.Background(), g.projector.Run) }

// startIndexing runs the index once the model has caught up. Until then, the CPUs are for the load, which
// clients wait for.
func (g *generation) startIndexing() {
	g.indexing = task.Go(context.Background(), func(ctx context.Context) error {
		isCaughtUp := func() bool { return g.projector.Progress().CaughtUp }
		if !pause.Until(ctx, catchUpEvery, isCaughtUp) {
			return nil
		}

		// Loading leaves garbage about as large as the model. A server without load would keep it.
		debug.FreeOSMemory()
		g.ranked.Run(ctx, g.model)
		return nil
	})
}

// indexStopWithin bounds the wait for the index when the process stops, since a disk can block forever. The
// index is a cache that the next start can rebuild.
const indexStopWithin = 5 * time.Second

// stop ends the index, then the projector, which saves all applied events, and then the model's goroutine. It
// returns the projector's error.
func (g *generation) stop(log *slog.Logger) error {
	defer g.model.Close()

	if g.indexing != nil {
		g.indexing.Cancel()
		select {
		case <-g.indexing.Done():
		case <-time.After(indexStopWithin):
			log.Warn("the index of ranked search does not stop; leaving it")
		}
	}
	return g.following.Stop()
}

// awaitEnd waits until the handlers have drained, or the projector has ended by itself. It returns false if another
// generation is shown first.
func (g *generation) awaitEnd(drained <-chan struct{}) bool {
	select {
	case <-drained:
		return true
	case <-g.following.Done():
		return g.replaced.Err() == nil // a replaced generation's projector is meant to end
	case <-g.replaced.Done():
		return false
	}
}

// follow waits until the handlers have drained, or the served generation's projector has ended by itself. It
// then stops the generation that is served.
func (s *server) follow(drained <-chan struct{}) error {
	g := s.live.current()
	for !g.awaitEnd(drained) {
		g = s.live.current() // a rebuild has replaced the generation
	}

	// A running rebuild ends and releases the lock. No other rebuild begins after that.
	s.cancel()
	s.rebuilding.Lock()
	defer s.rebuilding.Unlock()
	return s.live.current().stop(s.log)
}
