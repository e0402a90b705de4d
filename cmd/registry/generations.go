package main

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// newGeneration makes a projector for a store, reached through keeps, and its model. saved is where the two stand; a stream
// without a sequence makes it replay that stream, and no other, from its start. Rejected events up to
// known have been logged.
func (s *server) newGeneration(nc *nats.Conn, store *snapshots.Store, keeps projector.Store,
	model *readmodel.Model, saved readmodel.Checkpoint, known uint64) *generation {
	return newGeneration(generation{
		model:   model,
		store:   store,
		indexer: s.newIndexer(),
		projector: projector.New(projector.Config{
			Conn:     nc,
			Stream:   string(s.flags.Stream),
			Replicas: s.flags.StreamReplicas,
			History:  s.flags.StreamHistory,
			Demo:     s.flags.Demo,
			Model:    model,
			Store:    keeps,
			Saved:    saved,
			Known:    known,
			Logger:   s.log,

			PatienceAtStart: patienceAfter(time.Since(s.began)),
		}),
	})
}

// patienceAfter is how long the broker may yet leave a saved state unanswered for, when so long has passed since the start. Readers
// have it 10 s after that (API contract, operators): the projector asks twice a second, and an answer may take 2 s to stay away.
// A store that took long to load leaves the broker those 2 s.
func patienceAfter(passed time.Duration) time.Duration {
	return max(7*time.Second-passed, 2*time.Second)
}

// running is a generation whose projector runs, and its text index where it has been begun.
type running struct {
	*generation
	cancel    context.CancelFunc
	ended     chan struct{} // closed when the projector has ended
	err       error         // why; read after ended
	stopIndex func()
}

// start runs the projector of g. The caller stops it.
func (s *server) start(g *generation) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{generation: g, cancel: cancel, ended: make(chan struct{}), stopIndex: func() {}}
	go func() {
		defer close(r.ended)
		r.err = g.projector.Run(ctx)
	}()
	return r
}

// stop ends the index and the projector, which saves what it has applied, and returns what Run did.
func (r *running) stop() error {
	r.stopIndex()
	r.cancel()
	<-r.ended
	return r.err
}

// keep keeps a generation up to date until the handlers have drained, and puts another one in its place
// when an operator asks for a rebuild.
func (s *server) keep(drained <-chan struct{}, nc *nats.Conn, now *running) error {
	defer close(s.rebuilds.ended)
	now.stopIndex = s.index(now.generation)
	for {
		select {
		case <-drained:
			return now.stop()
		case <-now.ended:
			return now.stop()
		case r := <-s.rebuilds.asked:
			if next := s.answer(r, nc, now, drained); next != now { // one that was given up leaves the old one, and its index
				now = next
				now.stopIndex = s.index(now.generation)
			}
		}
	}
}
