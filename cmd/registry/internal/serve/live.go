package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/httpapi"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
)

// live is the listeners' access to the process while it starts, runs and stops. Any goroutine may
// use it; each part is set once it exists.
type live struct {
	generation    atomic.Pointer[generation]    // never nil; an empty model until the saved state is loaded
	rebuild       atomic.Pointer[rebuilding]    // nil if none is running
	brokerURL     atomic.Pointer[string]        // of the embedded broker; nil or empty without a listener
	brokerProblem atomic.Pointer[string]        // of the embedded broker; nil if none
	unreachable   atomic.Pointer[string]        // why the external broker cannot be used; nil while connected
	stream        atomic.Pointer[stream.Stream] // nil until project sets it; its connection may be down
	starting      atomic.Pointer[string]        // the current step of the start, if startReason cannot find it out; else nil
	stopping      atomic.Bool
}

func newLive() *live {
	l := &live{}
	l.generation.Store(newGeneration(generation{model: readmodel.New()}))
	return l
}

// showGeneration replaces the current generation. Clients in Await go on waiting for the new one. There is one
// pointer to all parts, so that the model, store, projector and index that a client sees belong together.
func (l *live) showGeneration(g *generation) { l.generation.Swap(g).replace() }

// current returns the current generation. Call it once to read several parts consistently.
func (l *live) current() *generation { return l.generation.Load() }

// View returns the newest view; it is empty during the load of the saved state.
func (l *live) View() *readmodel.View { return l.current().model.View() }

// Await waits for a sequence. If another generation is shown meanwhile, it goes on waiting there, since a
// replaced model no longer advances.
func (l *live) Await(ctx context.Context, seq uint64) (*readmodel.View, error) {
	for {
		v, err := l.current().await(ctx, seq)
		if err == nil || ctx.Err() != nil {
			return v, err
		}
	}
}

// rankedIndex returns the current index of ranked search, or nil if there is none. (A nil *ranked.Engine
// in an interface would not be nil.)
func (l *live) rankedIndex() httpapi.RankedIndex {
	if x := l.current().ranked; x != nil {
		return x
	}
	return nil
}

// readiness says whether the model may be served. Each request calls it, so it takes no lock.
func (l *live) readiness() httpapi.Readiness {
	p, running := l.current().progress()
	if !running {
		return httpapi.Readiness{Reason: l.startReason()}
	}
	return httpapi.Readiness{Ready: p.CaughtUp, Reason: l.explainError(p), Frozen: p.Frozen != "", AsOf: p.AsOf, Stopping: l.stopping.Load()}
}

// startReason returns why nothing is served before there is a projector: the current step of the start.
func (l *live) startReason() string {
	starting := l.starting.Load()
	if starting == nil && l.current().store == nil {
		return "loading the saved state" // this step does not need the broker
	}

	step := "waiting for the broker"
	if starting != nil {
		step = *starting
	}
	if reason := l.unreachable.Load(); reason != nil {
		return step + ": " + *reason
	}
	return step
}

// explainError returns the projector's last error. While the broker cannot be reached, the reason for that takes the
// error's place. A frozen projector's error stays, since that error is about the stream itself.
func (l *live) explainError(p projector.Progress) string {
	reason := l.unreachable.Load()
	if reason == nil || p.LastError == "" || p.Frozen != "" {
		return p.LastError
	}
	return "The broker cannot be reached: " + *reason + "."
}

// embeddedProblem returns the known problem of the embedded broker, or "".
func (l *live) embeddedProblem() string {
	if p := l.brokerProblem.Load(); p != nil {
		return *p
	}
	return ""
}

// projection returns the document of /projection. Its counts, digest and checkpoint are of one view.
func (l *live) projection() admin.Projection {
	g := l.current()
	view := g.model.View()
	doc := admin.ProjectionOf(view)
	doc.Rebuilding = l.rebuild.Load().describeProgress()
	p, running := g.progress()
	if !running {
		doc.LastError = new(l.startReason())
		return doc
	}

	doc.Stream = p.Stream
	doc.Epoch = p.Epoch
	doc.LastSequence = p.LastSequence
	doc.Lag = p.Lag
	doc.LagSeconds = p.LagSeconds
	doc.CaughtUp = p.CaughtUp
	doc.Rejected = p.Rejected
	doc.SnapshotSequence = p.Saved
	doc.WaitingPurges = p.WaitingPurges
	doc.Rewound = p.Rewound
	doc.Unpublished = p.Unpublished
	if p.Frozen != "" {
		doc.Frozen = &p.Frozen
	}

	// LastError has one sentence, about the most urgent problem.
	seq, rankedProblem := g.rankedState(view)
	doc.RankedSequence = seq
	sentence := cmp.Or(l.embeddedProblem(), l.explainError(p), rankedProblem)
	if sentence != "" {
		doc.LastError = &sentence
	}
	return doc
}

// checkDatabase returns nil if the store can be read and written and the stream answers. ctx bounds the
// request to the stream.
func (l *live) checkDatabase(ctx context.Context) error {
	g := l.current()
	p, running := g.progress()
	eventStream := l.stream.Load()
	if eventStream == nil || !running {
		return errors.New(l.startReason())
	}

	if !p.Connected {
		return errors.New("the broker is away")
	}
	if p.Frozen != "" {
		return errors.New("frozen: " + p.LastError)
	}
	if problem := l.embeddedProblem(); problem != "" {
		return errors.New(problem)
	}

	// The projector knows of no problem. Ask the disk and the stream themselves.
	if err := g.store.Probe(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if _, err := eventStream.Info(ctx); err != nil {
		return fmt.Errorf("stream %s: %w", eventStream.Name, err)
	}
	return nil
}

// knownRevision returns the greatest revision that is known of a subject, or 0.
func (l *live) knownRevision(subject events.Subject) int64 {
	if g := l.current(); g.projector != nil {
		return g.projector.Known(subject)
	}
	return 0
}
