package projector

import (
	"context"
	"testing"
	"time"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// A message that was erased before it was sent, by a later one on its subject, leaves the model
// without that subject at the end that the stream had at start: it is not served there (promise 7).
func TestCaughtUpLacksNothing(t *testing.T) {
	s := newSystem(t)
	entries := eventstest.Entries(3, 1)
	s.tune = func(c *Config) { c.History = 1 }
	s.start()
	var target uint64
	for _, e := range entries {
		target = s.publish(eventstest.Listed(e, 1))
	}
	s.reach(target)
	s.mustStop()
	last := s.publish(eventstest.Listed(entries[0], 2))

	s.path += ".fresh"
	s.beforeRun = func(p *Projector) {
		p.aim(toStart, time.Now(), target)
		p.PauseAt(target)
	}
	s.start()
	s.progress("at the end that was", func(p Progress) bool { return p.Applied == 2 && p.LastSequence == last })
	if v := s.model.View(); v.Sequence() != target || s.p.Progress().CaughtUp {
		t.Errorf("caught up at %d: %+v", v.Sequence(), s.p.Progress())
	}
	s.p.Resume()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp })
	if v := s.model.View(); v.Sequence() != last || v.Total() != len(entries) {
		t.Errorf("caught up at %d with %d entries", v.Sequence(), v.Total())
	}
	if p := s.p.Progress(); p.AsOf.IsZero() {
		t.Error("complete, and never known to be")
	}
	s.reach(last)
	s.inspect()
}

// A target that a session reached without knowing what was erased is moved to the stream's end by
// the next one.
func TestCaughtUpInAnotherSession(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	last := s.publish(eventstest.Events(3, 1)...)
	s.beforeRun = func(p *Projector) {
		p.aim(toStart, time.Now(), 0)
		p.PauseAt(0)
	}
	s.start()
	s.progress("following", func(p Progress) bool { return p.Total == 3 && p.LastSequence == last })
	if s.p.Progress().CaughtUp {
		t.Error("caught up with nothing")
	}
	s.p.Resume()
	s.reach(last)
	s.inspect()
}

// The stream itself is asked where it ends: of what the broker counts as pending some may never
// come.
func TestArriveAsksForTheEnd(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	last := s.publish(eventstest.Events(3, 1)...)
	p := New(Config{JetStream: s.js, Model: readmodel.New(), ReadOnly: true})
	p.aim(toStart, time.Now(), last-1)
	away, cancel := context.WithCancel(t.Context())
	cancel()
	p.reachTarget(away, last-1)
	if len(p.restart) != 1 || p.phase != toStart {
		t.Error("arrived without an answer, or the session goes on")
	}
	p.reachTarget(t.Context(), last-1)
	if p.Progress().CaughtUp || p.target != last {
		t.Errorf("caught up before %d, target %d", last, p.target)
	}
	p.reachTarget(t.Context(), last)
	if now := p.Progress(); !now.CaughtUp || now.AsOf.IsZero() {
		t.Errorf("not caught up at the end: %+v", now)
	}
}
