package main

import (
	"context"
	"sync/atomic"

	"example.org/registry/httpapi"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// generation is a read model with everything that belongs to it. Its fields are fixed; what comes into
// being later, and what a rebuild makes, is another generation.
type generation struct {
	model     *readmodel.Model
	store     *snapshots.Store     // nil while the saved state is being loaded
	projector *projector.Projector // nil until there is a connection to the broker
	indexer   *readmodel.Indexer   // nil without a text index

	shown context.Context // ends when another generation is shown
	leave context.CancelFunc
}

func newGeneration(g generation) *generation {
	g.shown, g.leave = context.WithCancel(context.Background())
	return &g
}

// progress is false while there is no projector.
func (g *generation) progress() (projector.Progress, bool) {
	if g.projector == nil {
		return projector.Progress{}, false
	}
	return g.projector.Progress(), true
}

// await waits on this generation alone; its error may be that another one is shown.
func (g *generation) await(ctx context.Context, seq uint64) (*readmodel.View, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.shown, cancel)()
	return g.model.Await(ctx, seq)
}

// live is what the listeners see of the rest of the process while it starts, runs and stops. Any
// goroutine may use it; each part is set once it exists.
type live struct {
	current       atomic.Pointer[generation] // never nil; an empty model until the saved state is loaded
	rebuild       atomic.Pointer[rebuilding] // nil while none is under way
	brokerURL     atomic.Pointer[string]     // of the embedded broker; nil or empty without a listener
	brokerTrouble atomic.Pointer[string]     // of the embedded broker; nil: none
	unreached     atomic.Pointer[unreached]  // of the broker outside; nil: there is a connection
	broker        atomic.Pointer[asked]      // for the status page; nil until there is a connection
	rebuilds      [outcomes]atomic.Uint64    // by how they ended
	starting      atomic.Pointer[string]     // what is done before there is a projector; nil: loading
	stopping      atomic.Bool
	history       httpapi.History // of the lag
}

func newLive() *live {
	l := &live{}
	l.current.Store(newGeneration(generation{model: readmodel.New()}))
	return l
}

// show puts a generation in the place of the one before: a single pointer, so that model, store,
// projector and index always belong together (promise 2).
func (l *live) show(g *generation) { l.current.Swap(g).leave() }

// now is the generation of this moment. Who reads several parts asks once.
func (l *live) now() *generation { return l.current.Load() }

// View is the newest state, of the empty model while the saved one is being loaded.
func (l *live) View() *readmodel.View { return l.now().model.View() }

// Await waits over generations: what a rebuild replaces does not grow any more. While the model is the
// empty one nobody gets here: the state below is not ready.
func (l *live) Await(ctx context.Context, seq uint64) (*readmodel.View, error) {
	for {
		v, err := l.now().await(ctx, seq)
		if err == nil || ctx.Err() != nil {
			return v, err
		}
	}
}

// progress is false until the projector exists.
func (l *live) progress() (projector.Progress, bool) { return l.now().progress() }

// lag is how many stream sequences wait to be dealt with; 0 until the projector runs.
func (l *live) lag() uint64 {
	p, _ := l.progress()
	return p.Lag
}
