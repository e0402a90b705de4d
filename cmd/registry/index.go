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
	// that the next start makes anew, and its library can block for ever.
	indexStops = 5 * time.Second
)

// index keeps the text index from when the model has caught up until stop is called.
func (s *server) index(model *readmodel.Model) (stop func()) {
	x := &readmodel.Indexer{Dir: s.flags.indexDir(), Logger: s.log}
	s.live.indexer.Store(x)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s.caughtUp(ctx) {
			x.Run(ctx, model)
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
func (s *server) caughtUp(ctx context.Context) bool {
	tick := time.NewTicker(indexAfter)
	defer tick.Stop()
	for {
		if p, running := s.live.progress(); running && p.CaughtUp {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// indexState is the sequence that the text index covers, and why there is none.
func (l *live) indexState() (sequence uint64, trouble string) {
	if x := l.indexer.Load(); x != nil {
		trouble = x.Trouble()
	}
	return l.model.Load().IndexSequence(), trouble
}
