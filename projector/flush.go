package projector

import (
	"context"
	"fmt"
)

// Flush returns when the store holds at least what the model had dealt with when Flush was called: for who
// is about to copy the store. It does not wait for SaveEvery. The error is that of ctx, or of a write that
// failed meanwhile. Before the model has caught up once, and while Run does not run, it waits for
// ctx. Any goroutine may call it.
func (p *Projector) Flush(ctx context.Context) error {
	if err := p.saver.flush(ctx, p.checkpoint().Sequence); err != nil {
		return fmt.Errorf("save what has been applied: %w", err)
	}
	return nil
}

// flush waits until the store has been given a checkpoint of at least seq.
func (s *saver) flush(ctx context.Context, seq uint64) error {
	s.hurry(1)
	defer s.hurry(-1)
	for first := true; ; first = false {
		s.mu.Lock()
		kept, failed, tried := s.kept, s.failed, s.tried
		s.mu.Unlock()
		switch {
		case kept >= seq:
			return nil
		case failed != nil && !first:
			return failed
		}
		select {
		case <-tried:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hurry makes saving wait for nothing, or lets it wait again.
func (s *saver) hurry(by int) {
	s.mu.Lock()
	s.urgent += by
	s.mu.Unlock()
	s.poke()
}

// attempted takes note of the outcome of a save. s.mu is held.
func (s *saver) attempted(checkpoint uint64, err error) {
	s.failed = err
	if err == nil {
		s.kept = max(s.kept, checkpoint)
	}
	close(s.tried)
	s.tried = make(chan struct{})
}
