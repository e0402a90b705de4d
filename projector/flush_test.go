package projector

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.org/registry/events/eventstest"
)

// Flush waits for nothing but the disk: here the store would have been written an hour later.
func TestFlush(t *testing.T) {
	s := newSystem(t)
	s.tune = func(c *Config) { c.SaveEvery = time.Hour }
	s.start()
	v, err := s.model.Await(t.Context(), s.publish(eventstest.Events(10, 1)...))
	if err != nil {
		t.Fatal(err)
	}
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.store.Checkpoint().Sequence; got < v.Sequence() {
		t.Errorf("store at %d after Flush, model at %d", got, v.Sequence())
	}
}

// A store that fails makes Flush fail, instead of waiting for its recovery.
func TestFlushFails(t *testing.T) {
	s := newSystem(t)
	s.tune = func(c *Config) { c.SaveEvery = time.Hour }
	s.wrap = func(st Store) Store {
		return &faulty{Store: st, fail: func(int) (bool, bool) { return true, false }}
	}
	s.start()
	if _, err := s.model.Await(t.Context(), s.publish(eventstest.Events(10, 1)...)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.p.Flush(ctx); !errors.Is(err, errFault) {
		t.Errorf("Flush: %v", err)
	}
}
