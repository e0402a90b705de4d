package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/leader"
	"example.org/registry/httpapi"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector"
	"example.org/registry/projector/rejected"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/exact"
	"example.org/registry/readmodel/ranked"
	"example.org/registry/snapshots"
)

// generation is a read model with everything that belongs to it. Its fields never change; what
// exists later, and what a rebuild makes, is another generation.
type generation struct {
	model     *readmodel.Model
	store     *snapshots.Store     // nil while the saved state is being loaded
	projector *projector.Projector // nil until there is a connection to the broker
	exact     *exact.Engine        // nil without a text index
	ranked    *ranked.Engine       // nil without ranked search

	replaced context.Context // ends when another generation is shown
	replace  context.CancelFunc
}

func newGeneration(g generation) *generation {
	g.replaced, g.replace = context.WithCancel(context.Background())
	return &g
}

// progress is false while there is no projector.
func (g *generation) progress() (projector.Progress, bool) {
	if g.projector == nil {
		return projector.Progress{}, false
	}
	return g.projector.Progress(), true
}

// await waits for a sequence of this generation. Its error may be that another one is shown.
func (g *generation) await(ctx context.Context, seq uint64) (*readmodel.View, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.replaced, cancel)()
	return g.model.Await(ctx, seq)
}

// indexState is the sequence that the text index covers, and why it lags. Without a text index
// nothing waits for it: it is where the model is.
func (g *generation) indexState() (sequence uint64, trouble string) {
	if g.exact == nil {
		return g.model.View().Sequence(), ""
	}
	return g.exact.Sequence(), g.exact.Trouble()
}

// rankedState is the sequence that the index of ranked search covers, 0 while there is none, and
// what is wrong with it.
func (g *generation) rankedState() (sequence uint64, trouble string) {
	if g.ranked == nil {
		return 0, ""
	}
	return g.ranked.Sequence(), g.ranked.Trouble()
}

// live is what the listeners see of the rest of the process while it starts, runs and stops. Any
// goroutine may use it; each part is set once it exists.
type live struct {
	current       atomic.Pointer[generation]    // never nil; an empty model until the saved state is loaded
	rebuild       atomic.Pointer[rebuilding]    // nil while none is under way
	rebuilt       [outcomes]atomic.Uint64       // rebuilds, by how they ended
	brokerURL     atomic.Pointer[string]        // of the embedded broker; nil or empty without a listener
	erased        atomic.Pointer[time.Time]     // when the store's free pages were erased last; nil: not yet
	brokerTrouble atomic.Pointer[string]        // of the embedded broker; nil: none
	unreachable   atomic.Pointer[cli.Diagnosis] // of the broker outside; nil: there is a connection
	stream        atomic.Pointer[leader.Stream] // nil until there is a connection, which may be down
	requests      atomic.Pointer[func() uint64] // how many have come in; nil until the listeners serve
	starting      atomic.Pointer[string]        // what happens before there is a projector; nil: startReason knows
	stopping      atomic.Bool
	history       admin.History // of the lag and the checkpoint
}

func newLive() *live {
	l := &live{}
	l.current.Store(newGeneration(generation{model: readmodel.New()}))
	return l
}

// show replaces the current generation: one pointer, so that model, store, projector and index
// always belong together (promise 2, readmodel/doc.go).
func (l *live) show(g *generation) { l.current.Swap(g).replace() }

// now is the current generation. Call it once to read several parts of one generation.
func (l *live) now() *generation { return l.current.Load() }

// View is the newest state; that of an empty model while the saved one is being loaded.
func (l *live) View() *readmodel.View { return l.now().model.View() }

// Await waits for a sequence across generations, since a replaced model stops growing. Nobody waits
// on the empty model at the start: it is not ready.
func (l *live) Await(ctx context.Context, seq uint64) (*readmodel.View, error) {
	for {
		v, err := l.now().await(ctx, seq)
		if err == nil || ctx.Err() != nil {
			return v, err
		}
	}
}

// rankedIndex is the index of ranked search as it is now, or nil while there is none.
func (l *live) rankedIndex() httpapi.RankedIndex {
	if x := l.now().ranked; x != nil {
		if a := x.Acquire(); a != nil {
			return a
		}
	}
	return nil
}

// progress is false until there is a projector.
func (l *live) progress() (projector.Progress, bool) { return l.now().progress() }

// look returns how many stream sequences are yet to be dealt with (0 until the projector runs), and
// the checkpoint.
func (l *live) look() (lag, checkpoint uint64) {
	g := l.now()
	p, _ := g.progress()
	return p.Lag, g.model.View().Sequence()
}

// readiness is called once per request: two atomic loads once the model has caught up.
func (l *live) readiness() httpapi.Readiness {
	running := l.now().projector
	if running == nil {
		return httpapi.Readiness{Reason: l.startReason()}
	}
	p := running.Status()
	if !p.CaughtUp { // else nobody reads it
		p.LastError = l.lastError(p.Frozen, p.LastError)
	}
	return httpapi.Readiness{Ready: p.CaughtUp, Reason: p.LastError, Frozen: p.Frozen, AsOf: p.AsOf, Stopping: l.stopping.Load()}
}

// startReason says what happens before there is a projector.
func (l *live) startReason() string {
	what := "waiting for the broker"
	if started := l.starting.Load(); started != nil {
		what = *started
	} else if l.now().store == nil {
		return "loading the saved state"
	}
	if d := l.unreachable.Load(); d != nil {
		return what + ": " + d.String()
	}
	return what
}

// lastError is the projector's, with the reason where it only knows that there is no connection.
func (l *live) lastError(frozen bool, said string) string {
	if d := l.unreachable.Load(); d != nil && said != "" && !frozen {
		return "The broker cannot be reached: " + d.String() + "."
	}
	return said
}

// trouble is what is wrong with the embedded broker; "" when nothing is known to be.
func (l *live) trouble() string {
	if t := l.brokerTrouble.Load(); t != nil {
		return *t
	}
	return ""
}

// projection is the document of /projection. Its counts, digest and checkpoint are of one view.
func (l *live) projection() admin.Projection {
	g := l.now()
	p, running := g.progress()
	doc := admin.ProjectionOf(g.model.View())
	doc.Rebuilding = l.rebuild.Load().document(time.Now())
	if !running {
		doc.LastError = new(l.startReason())
		return doc
	}
	doc.Stream, doc.StreamEpoch, doc.StreamCreated = p.Stream, p.StreamEpoch, p.StreamCreated
	doc.LastSequence = p.LastSequence
	doc.Lag, doc.LagSeconds, doc.CaughtUp = p.Lag, p.LagSeconds, p.CaughtUp
	doc.Rejected, doc.SnapshotSequence = p.Rejected, p.Saved
	doc.SubjectsNotErased = p.SubjectsNotErased
	doc.SubjectsWithoutValidEvent = append(doc.SubjectsWithoutValidEvent, p.SubjectsWithoutValidEvent...)
	sequence, trouble := g.indexState()
	doc.IndexSequence = min(sequence, doc.Checkpoint)
	ranked, rankedTrouble := g.rankedState()
	doc.RankedSequence = min(ranked, doc.Checkpoint)
	if trouble = cmp.Or(l.lastError(p.Frozen, p.LastError), l.trouble(), trouble, rankedTrouble); trouble != "" {
		doc.LastError = &trouble
	}
	return doc
}

// database is nil when the store can be read and written and the stream answers. It asks both at
// once; ctx bounds the request to the stream.
func (l *live) database(ctx context.Context) error {
	g, stream := l.now(), l.stream.Load()
	p, running := g.progress()
	switch {
	case stream == nil || !running:
		return errors.New(l.startReason())
	case !p.Connected:
		return errors.New("the broker is away")
	case p.Frozen:
		return errors.New("frozen: " + p.LastError)
	case l.trouble() != "":
		return errors.New(l.trouble())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := g.store.Probe(); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		if _, err := stream.Info(ctx); err != nil {
			return fmt.Errorf("stream %s: %w", stream.Name, err)
		}
		return nil
	})
	return group.Wait()
}

// recordsWithin bounds the wait for a sequence that the request names.
const recordsWithin = 10 * time.Second

// records is what GET /records shows: everything of one generation at one sequence, which is at
// least atLeast.
func (l *live) records(ctx context.Context, atLeast uint64) (admin.Records, error) {
	ctx, cancel := context.WithTimeout(ctx, recordsWithin)
	defer cancel()
	if p, running := l.progress(); !running || !p.CaughtUp {
		return admin.Records{}, admin.Unavailable("the read model has not caught up with the stream yet")
	} else if p.Frozen && p.Checkpoint < atLeast {
		return admin.Records{}, admin.Unavailable("frozen: " + p.LastError)
	}
	if _, err := l.Await(ctx, atLeast); err != nil {
		return admin.Records{}, admin.Unavailable("the server has not reached this sequence yet; try again")
	}
	g := l.now()
	p, _ := g.progress()
	all := admin.Records{Stream: p.Stream, StreamEpoch: p.StreamEpoch}
	g.projector.Inspect(func(m *readmodel.Model) { all.Inventory = m.Inventory() })
	return all, nil
}

// tombstones is what GET /tombstones shows. Before the model has caught up it refuses: a partial
// answer would look complete and could relist somebody.
func (l *live) tombstones() (admin.Tombstones, error) {
	g := l.now()
	p, running := g.progress()
	if !running || !p.CaughtUp {
		return admin.Tombstones{}, admin.Unavailable("the read model has not caught up with the stream yet")
	}
	v := g.model.View()
	all := admin.Tombstones{All: v.Withdrawn(), Epoch: v.Epoch(), Sequence: v.Sequence()}
	if saved := g.store.Checkpoint(); saved.Sequence == all.Sequence {
		all.Time = saved.MessageTime
	}
	return all, nil
}

// lastRejected is at most so many of the last rejected events, the highest sequence first, for the
// operators' page.
func (l *live) lastRejected(ctx context.Context, most int) ([]admin.RejectedEvent, error) {
	stream := l.stream.Load()
	if stream == nil {
		return nil, errors.New(l.startReason())
	}
	if p, running := l.progress(); running && !p.Connected {
		return nil, errors.New("the broker is away")
	}
	copies, err := rejected.Last(ctx, stream.JS, most)
	shown := make([]admin.RejectedEvent, 0, len(copies))
	for _, c := range copies {
		shown = append(shown, admin.RejectedEvent{Sequence: c.Sequence, Time: c.Time, Subject: c.Subject, Reason: c.Reason})
	}
	return shown, err
}
