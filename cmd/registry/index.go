package main

import (
	"context"
	"time"

	"example.org/registry/readmodel"
)

const (
	// indexAfter is how often the indexer looks whether the model has caught up: until then the
	// processors belong to what readers wait for.
	indexAfter = 50 * time.Millisecond
	// indexStops is how long the process waits for the indexer when it stops. The index is a cache
	// that the next start makes anew, and a disk can block for ever.
	indexStops = 5 * time.Second
)

// newIndexer is nil where there is to be no text index.
func (s *server) newIndexer() *readmodel.Indexer {
	if !s.flags.TextIndex {
		return nil
	}
	return &readmodel.Indexer{Dir: s.flags.indexDir(), Logger: s.log}
}

// index keeps a generation's text index, if there is to be one, from when its model has caught up until
// stop is called.
func (s *server) index(g *generation) (stop func()) {
	if g.indexer == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if g.caughtUp(ctx) {
			g.indexer.Run(ctx, g.model)
		}
	}()
	return func() {
		cancel()
		select {
		case <-done:
		case <-time.After(indexStops):
			s.log.Warn("the text index does not stop; left behind")
		}
	}
}

// caughtUp waits until the model has caught up; false when ctx ends before.
func (g *generation) caughtUp(ctx context.Context) bool {
	tick := time.NewTicker(indexAfter)
	defer tick.Stop()
	for {
		if p, running := g.progress(); running && p.CaughtUp {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// indexState is the sequence that the text index covers, and why there is none. Where there is to
// be none nobody waits for it: it is where the model is.
func (g *generation) indexState() (sequence uint64, trouble string) {
	if g.indexer == nil {
		return g.model.View().Sequence(), ""
	}
	return g.model.IndexSequence(), g.indexer.Trouble()
}
