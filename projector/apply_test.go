package projector

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/readmodel"
)

// Nothing is applied behind a PauseAt until Resume; a bound further on is reached to the message, and
// where it lies in a gap, exactly.
func TestHold(t *testing.T) {
	s := newSystem(t)
	s.start()
	evs := eventstest.Events(300, 1)
	first := s.publish(evs[:10]...)
	s.reach(first)
	if at := s.p.PauseAt(0); at.Sequence != first {
		t.Errorf("held at %d, not %d", at.Sequence, first)
	}
	last := s.publish(evs[10:]...)
	s.progress("seen to be behind", func(p Progress) bool { return p.LastSequence == last })
	if v := s.model.View(); v.Sequence() != first {
		t.Errorf("applied up to %d while held at %d", v.Sequence(), first)
	}
	for _, to := range []uint64{first + 1, first + 7, first + 150} {
		s.p.PauseAt(to)
		s.until("reached", func() bool { return s.model.View().Sequence() >= to })
		s.p.Inspect(func(m *readmodel.Model) {
			if v := m.View(); v.Sequence() != to || v.Digest() != s.replayTo(to).Digest() {
				t.Errorf("bound at %d: view at %d with another digest than a replay up to there", to, v.Sequence())
			}
		})
	}
	s.p.Resume()
	s.reach(last)
	s.inspect()
}

// A replay that only looks makes no stream, copies no rejected event and saves nothing, and takes
// any stream that is there.
func TestReadOnly(t *testing.T) {
	s := newSystem(t)
	s.tune = func(c *Config) { c.ReadOnly, c.Store = true, nil }
	eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.Metadata[events.MetadataDemo] = "true" })
	s.publish(eventstest.Events(10, 1)...)
	last := eventstest.PublishRaw(t, s.js, "registry.scammers.bad", []byte("{}"))
	s.start()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp && p.Checkpoint == last })
	if got, want := s.model.View().Digest(), s.replay().Digest(); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if _, err := s.js.Stream(t.Context(), events.RejectedStream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream of rejected events: %v", err)
	}
	s.mustStop()
	if got := s.store.Checkpoint().Sequence; got != 0 {
		t.Errorf("saved %d", got)
	}
}

func TestReadOnlyMissing(t *testing.T) {
	s := newSystem(t)
	s.tune = func(c *Config) { c.ReadOnly = true }
	s.start()
	s.progress("frozen", func(p Progress) bool { return p.Frozen() && !p.CaughtUp })
	if _, err := s.js.Stream(t.Context(), events.DefaultStream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream: %v", err)
	}
}

// A replay of one stream takes no other: neither what replaces it nor a new one.
func TestReplayOfOneStream(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	s.publish(eventstest.Events(10, 1)...)
	s.tune = func(c *Config) { c.Saved.StreamEpoch = "another" }
	s.start()
	s.progress("frozen", func(p Progress) bool { return p.Frozen() && !p.CaughtUp && p.Checkpoint == 0 })
	if v := s.model.View(); v.Sequence() != 0 {
		t.Errorf("applied up to %d", v.Sequence())
	}
}

// TestGather: a batch has all waiting chunks, and at most maxBatch messages.
func TestGather(t *testing.T) {
	decoded := func(n int) *chunk {
		c := &chunk{messages: make([]leader.Delivery, n), done: make(chan struct{})}
		close(c.done)
		return c
	}
	count := func(batch []*chunk) (n int) {
		for _, c := range batch {
			n += len(c.messages)
		}
		return n
	}
	ordered := make(chan *chunk, maxDecoding)
	ordered <- decoded(2)
	if batch := gather(decoded(1), ordered); len(batch) != 2 || count(batch) != 3 {
		t.Errorf("waiting: %d chunks, %d messages", len(batch), count(batch))
	}
	for range maxDecoding {
		ordered <- decoded(chunkMessages)
	}
	if n := count(gather(decoded(2*chunkMessages), ordered)); n > maxBatch || n <= maxBatch-chunkMessages {
		t.Errorf("too many: %d messages", n)
	}
}

// An erased end of the stream is passed over only if no message has arrived since the question for it:
// what came in between is not skipped.
func TestErasedTailAfterAMessage(t *testing.T) {
	p := New(Config{Model: readmodel.New()})
	p.setCheckpoint(readmodel.Checkpoint{Sequence: 5})
	if p.moveOver(erasure{from: 3, to: 9}) || p.Checkpoint().Sequence != 5 {
		t.Errorf("moved from 5 over what was asked for at 3: %+v", p.Checkpoint())
	}
	if !p.moveOver(erasure{from: 5, to: 9}) || p.Checkpoint().Sequence != 9 {
		t.Errorf("not moved over what was asked for at 5: %+v", p.Checkpoint())
	}
}
