package main

import (
	"cmp"
	"time"

	"example.org/registry/httpapi"
)

// state is what the listeners go by: two atomic loads once it is caught up.
func (l *live) state() httpapi.State {
	running := l.now().projector
	if running == nil {
		return httpapi.State{Reason: l.beginning()}
	}
	p := running.Standing()
	if !p.CaughtUp { // else nobody is told
		p.LastError = l.lastError(p.Frozen, p.LastError)
	}
	return httpapi.State{Ready: p.CaughtUp, Reason: p.LastError, Frozen: p.Frozen, AsOf: p.AsOf, Stopping: l.stopping.Load()}
}

// projection is the document of /projection. Its counts, digest and checkpoint are of one view.
func (l *live) projection() httpapi.Projection {
	g := l.now()
	p, running := g.progress()
	doc := httpapi.ProjectionOf(g.model.View())
	doc.Rebuilding = l.rebuild.Load().document(time.Now())
	if !running {
		doc.LastError = new(l.beginning())
		return doc
	}
	doc.Stream, doc.StreamEpoch, doc.StreamCreated = p.Stream, p.Epoch, p.Created
	doc.LastSequence = p.LastSequence
	doc.Lag, doc.LagSeconds, doc.CaughtUp = p.Lag, p.LagSeconds, p.CaughtUp
	doc.Rejected, doc.SnapshotSequence = p.Rejected, p.Saved
	doc.SubjectsWithoutValidEvent = append(doc.SubjectsWithoutValidEvent, p.SubjectsWithoutValidEvent...)
	sequence, trouble := g.indexState()
	doc.IndexSequence = min(sequence, doc.Checkpoint)
	if trouble = cmp.Or(l.lastError(p.Frozen, p.LastError), l.trouble(), trouble); trouble != "" {
		doc.LastError = &trouble
	}
	return doc
}

// lastError is what the projector says, with the reason where it only knows that there is no connection.
func (l *live) lastError(frozen bool, said string) string {
	if why := l.unreachable(); why != "" && said != "" && !frozen {
		return "The broker cannot be reached: " + why + "."
	}
	return said
}
