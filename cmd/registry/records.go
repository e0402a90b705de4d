package main

import (
	"context"
	"time"

	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
)

// recordsWithin bounds the wait for a sequence that is asked for.
const recordsWithin = 10 * time.Second

// records is what GET /records shows: everything of one generation at one sequence.
func (l *live) records(ctx context.Context, atLeast uint64) (httpapi.Records, error) {
	ctx, cancel := context.WithTimeout(ctx, recordsWithin)
	defer cancel()
	if p, running := l.progress(); !running || !p.CaughtUp {
		return httpapi.Records{}, httpapi.Unavailable("the read model has not caught up with the stream yet")
	} else if p.Frozen && p.Checkpoint < atLeast {
		return httpapi.Records{}, httpapi.Unavailable("frozen: " + p.LastError)
	}
	if _, err := l.Await(ctx, atLeast); err != nil {
		return httpapi.Records{}, httpapi.Unavailable("the server has not come so far in the stream; try again")
	}
	g := l.now()
	p, _ := g.progress()
	all := httpapi.Records{Stream: p.Stream, StreamEpoch: p.Epoch}
	g.projector.Inspect(func(m *readmodel.Model) { all.Inventory = m.Inventory() })
	return all, nil
}
