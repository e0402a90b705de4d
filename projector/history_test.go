package projector

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// A marker changes the name of the history for those who follow, who replay and who start from what
// was saved alike, and is no rejected event.
func TestHistoryOfReplicas(t *testing.T) {
	s := newSystem(t)
	s.start()
	v := s.reach(s.publish(eventstest.Events(20, 1)...))
	first := v.Epoch()
	if p := s.p.Progress(); first == "" || p.HistoryName() != first || p.History != "" {
		t.Fatalf("feed %q, projector %+v", first, p.StreamIdentity)
	}
	stream := leader.Stream{JS: s.js, Name: events.DefaultStream}
	name, at, err := lineage.Begin(t.Context(), stream, first)
	require.NoError(t, err)
	if v = s.reach(at); v.Epoch() != name || name == first {
		t.Errorf("the feed is %q, want %q", v.Epoch(), name)
	}
	last := s.publish(others(5)...)
	s.reach(last)
	s.mustStop()
	if saved := s.store.Checkpoint(); saved.HistoryName() != name || saved.StreamEpoch != first {
		t.Errorf("saved %+v", saved)
	}
	s.start()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp })
	if v = s.model.View(); v.Epoch() != name {
		t.Errorf("after a restart the feed is %q, want %q", v.Epoch(), name)
	}
	s.mustStop()
	remove(t, s.path)
	s.start()
	if v = s.reach(last); v.Epoch() != name || s.p.Progress().RejectedHere != 0 {
		t.Errorf("after a replay the feed is %q, want %q; %d rejected", v.Epoch(), name, s.p.Progress().RejectedHere)
	}
}

// Servers that accept a stream at the same time begin one history, and those that come later none.
func TestBeginHistoryOnce(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	stream := leader.Stream{JS: s.js, Name: events.DefaultStream}
	var names [8]string
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() {
			var err error
			if names[i], _, err = lineage.Begin(t.Context(), stream, "A"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, name := range names {
		if name != names[0] || name == "" {
			t.Errorf("several histories: %q", names)
		}
	}
	if n := s.info(events.DefaultStream).State.Msgs; n != 1 {
		t.Errorf("%d markers", n)
	}
	second, at, err := lineage.Begin(t.Context(), stream, names[0])
	if err != nil || second == names[0] || at != 2 {
		t.Errorf("the next history is %q at %d, %v", second, at, err)
	}
	// One that comes later still is of the first history, or of the one before.
	for _, previous := range []string{"A", names[0]} {
		if name, at, err := lineage.Begin(t.Context(), stream, previous); err != nil || name != second || at != 2 {
			t.Errorf("after %q comes %q at %d, %v; want %q", previous, name, at, err, second)
		}
	}
	if third, at, err := lineage.Begin(t.Context(), stream, second); err != nil || third == second || at != 3 {
		t.Errorf("the third history is %q at %d, %v", third, at, err)
	}
}

// A checkpoint beyond the marker of another history is not of the stream, though no message is left
// that could tell.
func TestHistoryInCheck(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	s.publish(eventstest.Events(10, 1)...)
	stream := leader.Stream{JS: s.js, Name: events.DefaultStream}
	name, marker, err := lineage.Begin(t.Context(), stream, "A")
	require.NoError(t, err)
	last := s.publish(others(10)...)
	info := s.info(events.DefaultStream)
	for _, c := range []struct {
		sequence uint64
		history  string
		ours     bool
	}{
		{marker - 1, "", true}, {marker, "", false}, {last, "", false}, {last, "A", false}, {marker, name, true}, {last, name, true},
	} {
		m, err := stream.Message(t.Context(), c.sequence)
		require.NoError(t, err)
		at := readmodel.Checkpoint{StreamIdentity: lineage.Of(info), Sequence: m.Sequence, MessageID: m.ID, MessageTime: m.Time}
		at.History = c.history
		var wrong *lineage.Error
		if err := lineage.Check(t.Context(), stream, at); errors.As(err, &wrong) == c.ours || c.ours && err != nil {
			t.Errorf("%d of %q: %v", c.sequence, c.history, err)
		}
	}
}
