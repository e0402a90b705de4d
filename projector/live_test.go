package projector

import (
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// Live: from an empty broker on, each event becomes visible, and the store follows.
func TestLive(t *testing.T) {
	s := newSystem(t)
	s.start()
	s.progress("caught up with nothing", func(p Progress) bool { return p.CaughtUp && p.Connected && p.LastError == "" })
	evs := eventstest.Events(300, 1)
	last := s.publish(evs[:100]...)
	if v := s.reach(last); v.Entries(events.Scammers) == 0 {
		t.Error("nothing on the list")
	}
	last = s.publish(evs[100:]...)
	s.reach(last)
	s.progress("all dealt with", func(p Progress) bool {
		return p.Checkpoint == last && p.LastSequence == last && p.Lag == 0 && p.Applied == 300 && p.Saved == last && p.LastError == ""
	})
	s.inspect()
}
