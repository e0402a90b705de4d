package projector

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// mirrored makes an origin, and a mirror of it in the stream's place.
func mirrored(t *testing.T, s *system, change func(*jetstream.StreamSource)) (origin jetstream.Stream) {
	t.Helper()
	origin = eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.Name = "FAR" })
	eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) {
		c.Metadata = origin.CachedInfo().Config.Metadata
		c.Subjects, c.Duplicates, c.AllowAtomicPublish, c.Mirror = nil, 0, false, &jetstream.StreamSource{Name: "FAR"}
		if change != nil {
			change(c.Mirror)
		}
	})
	return origin
}

// A mirror is followed like its origin, without a word about what a mirror cannot have; a model of
// it is complete as of when the origin was asked. Without its origin it is served, and that is said.
func TestMirror(t *testing.T) {
	s := newSystem(t)
	mirrored(t, s, nil)
	began := time.Now()
	last := s.publish(eventstest.Events(20, 1)...)
	s.start()
	v := s.reach(last)
	s.progress("complete as of now", func(p Progress) bool { return p.CaughtUp && p.LastError == "" && p.AsOf.After(began) })
	if n := s.log.Count("stream differs"); n > 0 {
		t.Errorf("%d differences: %s", n, s.log.String())
	}
	require.NoError(t, s.js.DeleteStream(context.Background(), "FAR"))
	s.progress("said", func(p Progress) bool {
		return !p.Frozen() && p.CaughtUp && strings.Contains(p.LastError, "The origin FAR of the mirror REGISTRY cannot be followed")
	})
	eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.Name = "FAR" }) // another registry's
	s.progress("frozen", func(p Progress) bool {
		return p.FrozenBy == FrozenForeign && strings.Contains(p.LastError, "The origin FAR of the mirror REGISTRY is another registry's")
	})
	last = s.publish(eventstest.Events(30, 2)...)
	s.until("mirrored", func() bool { return s.info().State.LastSeq == last })
	if s.model.View().Digest() != v.Digest() {
		t.Error("not the last state")
	}
}

// An origin that was put back to an older state, and has grown since, is noticed at the edge though
// the mirror itself has lost nothing.
func TestMirrorOfAnotherHistory(t *testing.T) {
	s := newSystem(t)
	origin := mirrored(t, s, nil)
	last := s.publish(eventstest.Events(20, 1)...)
	s.start()
	s.reach(last)
	s.mustStop()
	require.NoError(t, s.js.DeleteStream(context.Background(), "FAR"))
	eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { *c = origin.CachedInfo().Config })
	s.publish(eventstest.Events(30, 2)...)
	s.start()
	s.progress("said", func(p Progress) bool { return strings.Contains(p.LastError, "make the mirror anew") })
}

// A mirror of a part would pass for the whole.
func TestMirrorOfAPart(t *testing.T) {
	for name, change := range map[string]func(*jetstream.StreamSource){
		"filter": func(m *jetstream.StreamSource) {
			m.FilterSubject = events.Subject{Kind: events.KindEntry, List: "*", ID: "*"}.String()
		},
		"start": func(m *jetstream.StreamSource) { m.OptStartSeq = 5 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			mirrored(t, s, change)
			if err := s.runOnce(nil); err == nil || !strings.Contains(err.Error(), "a mirror's "+name) {
				t.Errorf("Run: %v", err)
			}
		})
	}
}
