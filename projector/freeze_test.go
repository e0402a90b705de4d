package projector

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// says waits until lastError has part in it, and the projector is frozen.
func (s *system) says(part string) {
	s.t.Helper()
	s.progress("frozen: "+part, func(p Progress) bool {
		return p.Frozen && strings.Contains(p.LastError, part) && strings.Contains(p.LastError, "accept-stream")
	})
}

// others are n events that no other part of a test has published.
func others(n int) []events.Event {
	evs := eventstest.Events(n, 77)
	for i := range evs {
		evs[i].ID = fmt.Sprint("other-", i)
	}
	return evs
}

// What lastError says of a stream that is gone, and then another one, and then gone again.
func TestReasonAfterRecreation(t *testing.T) {
	s := newSystem(t)
	s.start()
	v := s.reach(s.publish(eventstest.Events(10, 1)...))
	for range 2 {
		if err := s.js.DeleteStream(context.Background(), events.DefaultStream); err != nil {
			t.Fatal(err)
		}
		s.says("is missing")
		eventstest.Stream(t, s.js)
		s.says("is another one")
	}
	// The stream that is there now has nothing to apply, and yet the model is not complete.
	s.progress("lag grows", func(p Progress) bool { return p.Lag == 0 && p.LastSequence == 0 && p.LagSeconds > 0.5 })
	s.frozen(v.Sequence(), v.Digest().String())
	if n := s.log.count("still frozen, for another reason"); n != 3 {
		t.Errorf("%d log lines about another reason", n)
	}
}

// The stream is shorter, grows, and grows past the checkpoint: lastError follows, the growth alone
// is not logged, and what was seen to be replaced does not thaw by itself any more.
func TestReasonAfterRegrowth(t *testing.T) {
	s := newSystem(t)
	old, full := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "full")
	s.publishAround(old)
	s.start()
	v := s.reach(s.info(events.DefaultStream).State.LastSeq)
	s.restartBroker(func() {
		move(t, s.dir, full)
		move(t, old, s.dir)
	})
	s.says("ends at 20, before the checkpoint 30")
	evs := others(25)
	s.publish(evs[:5]...)
	s.says("ends at 25, before the checkpoint 30. Nothing is applied until the stream is back as it was, which ends this by itself, or until")
	if n := s.log.count("still frozen"); n != 0 {
		t.Errorf("%d log lines about a length", n)
	}
	s.publish(evs[5:]...)
	s.says("holds another message at the checkpoint 30. Nothing is applied until registry rebuild")
	s.progress("lastSequence beside it", func(p Progress) bool { return p.LastSequence == 45 })
	s.restartBroker(func() {
		remove(t, s.dir)
		move(t, full, s.dir)
	})
	s.says("looks right again. Nothing is applied until registry rebuild")
	s.frozen(v.Sequence(), v.Digest().String())
	if n := s.log.count("still frozen, for another reason"); n != 2 {
		t.Errorf("%d log lines about another reason", n)
	}
}

// A stream that has regrown without a message at the checkpoint neither thaws nor is called shorter;
// with the message it thaws.
func TestReasonWithoutMessage(t *testing.T) {
	s := newSystem(t)
	old, full := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "full")
	s.publishAround(old)
	s.start()
	v := s.reach(30)
	s.restartBroker(func() {
		move(t, s.dir, full)
		move(t, old, s.dir)
	})
	s.says("ends at 20, before the checkpoint 30")
	stream, err := s.js.Stream(context.Background(), events.DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	// Purged up to a sequence that it has not reached, a stream goes on behind that.
	if err := stream.Purge(context.Background(), jetstream.WithPurgeSequence(41)); err != nil {
		t.Fatal(err)
	}
	s.publish(others(1)...)
	s.says("no message at the checkpoint 30")
	s.restartBroker(func() {
		remove(t, s.dir)
		move(t, full, s.dir)
	})
	s.progress("thawed", func(p Progress) bool { return !p.Frozen && p.Connected && p.LastError == "" })
	if got := s.model.View(); got.Sequence() != v.Sequence() || got.Digest() != v.Digest() {
		t.Errorf("view after thawing: %d %s", got.Sequence(), got.Digest())
	}
}
