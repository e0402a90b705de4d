package projector

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// others are n events that no other part of a test has published.
func others(n int) []events.Event {
	evs := eventstest.Events(n, 77)
	for i := range evs {
		evs[i].ID = fmt.Sprint("other-", i)
	}
	return evs
}

// listings are n listings of different entries, in order.
func listings(n int) (evs []events.Event) {
	for i, e := range eventstest.Entries(n, 1) {
		evs = append(evs, eventstest.Listed(e, i+1))
	}
	return evs
}

// settled waits until it is known what the stream lacks, and returns the view and the feed.
func (s *system) settled(unpublished int) *readmodel.View {
	s.t.Helper()
	s.progress(fmt.Sprint("unpublished: ", unpublished), func(p Progress) bool {
		return p.CaughtUp && p.Compared && p.Unpublished == unpublished && !p.Frozen() && p.Lag == 0 && s.model.View().Epoch() != ""
	})
	return s.model.View()
}

// A fork shares no earlier history: who reads its marker goes on, and others find it foreign.
func TestFork(t *testing.T) {
	s := newSystem(t)
	s.start()
	v := s.reach(s.publish(listings(10)...))
	s.mustStop()
	before := s.store.Checkpoint()
	stream := leader.Stream{JS: s.js, Name: events.DefaultStream}
	fork := events.History{Name: "fork", Kind: events.HistoryFork, Revision: 1}
	_, err := lineage.Begin(t.Context(), stream, fork, 0)
	require.NoError(t, err)
	s.start()
	s.reach(s.publish(others(1)...))
	require.Equal(t, "fork", s.model.View().Epoch())
	s.mustStop()
	require.Equal(t, []string{"fork"}, s.store.Checkpoint().Histories)
	marker, _, err := lineage.Newest(t.Context(), stream, math.MaxUint64)
	require.NoError(t, err)
	require.False(t, lineage.Share(before.Histories, marker.Names(before.StreamIdentity)))
	require.Equal(t, []string{v.Epoch()}, before.Histories)
}

// The messages at the last positions are gone, as newer ones of their subjects displace them: the
// stream is read again from an earlier one, which changes nothing.
func TestDisplacedPosition(t *testing.T) {
	s := newSystem(t)
	s.start()
	evs := listings(40)
	s.publish(evs[:30]...)
	busy := func(n int) (last uint64) {
		for range n {
			evs[39].ID = events.NewEventID()
			last = s.publish(evs[39])
		}
		return last
	}
	v := s.reach(busy(21))
	s.mustStop()
	at := s.store.Checkpoint()
	busy(30)
	stream := leader.Stream{JS: s.js, Name: events.DefaultStream}
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	proven, rewound, err := lineage.Prove(t.Context(), stream, info, at)
	require.NoError(t, err)
	require.False(t, rewound)
	require.True(t, proven > 0 && proven <= 30, "%d", proven)
	s.start()
	is := s.settled(0)
	require.Equal(t, v.Epoch(), is.Epoch())
	require.Equal(t, 1, s.log.Count("reading again from an earlier one"))
	s.inspect()
}

// Positions are the last messages and ever fewer of those before, the first included.
func TestPositions(t *testing.T) {
	var at readmodel.Checkpoint
	for seq := uint64(1); seq <= 100_000; seq += 7 {
		at.Sequence = seq
		at.Passed([]readmodel.Position{{Sequence: seq}})
	}
	n := len(at.Positions)
	require.Less(t, n, 64)
	require.Equal(t, uint64(1), at.Positions[0].Sequence)
	require.Equal(t, at.Sequence, at.Newest().Sequence)
	for i, p := range at.Positions[1:] {
		gap := p.Sequence - at.Positions[i].Sequence
		require.LessOrEqual(t, gap, max(7*20, (at.Sequence-at.Positions[i].Sequence)), "%v", at.Positions)
		require.Less(t, at.Positions[i].Sequence, p.Sequence)
	}
	require.True(t, slices.IsSortedFunc(at.Positions, func(a, b readmodel.Position) int { return int(a.Sequence) - int(b.Sequence) }))
	// Half of a stream is never between two of them.
	for _, p := range at.Positions[:n-1] {
		next := at.Positions[slices.Index(at.Positions, p)+1]
		require.LessOrEqual(t, next.Sequence-p.Sequence, at.Sequence/2+7*20)
	}
}

// Whatever the headers of the message at the checkpoint are, a restart of the projector or of the
// broker goes on after it: what receives messages and what compares them have one decoder.
func TestAnyMessageAtTheCheckpoint(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	s.start()
	for i, block := range []string{"NATS/1.0\r\nno colon\r\n\r\n", "garbage", "NATS/1.0\r\nStatus: 409\r\n\r\n"} {
		eventstest.DialRaw(t, s.addr).Publish(fmt.Sprint("registry.scammers.poison", i), block, nil)
		s.progress("rejected", func(p Progress) bool { return p.Rejected == uint64(2*i+1) && p.Lag == 0 })
		s.mustStop()
		s.start()
		s.reach(s.publish(eventstest.Events(2, uint64(i))...))
		eventstest.DialRaw(t, s.addr).Publish(fmt.Sprint("registry.scammers.poison", i), block, nil)
		s.progress("rejected again", func(p Progress) bool { return p.Rejected == uint64(2*i+2) && p.Lag == 0 })
		s.restartBroker(nil)
		s.reach(s.publish(eventstest.Events(2, uint64(i+10))...))
	}
	s.inspect()
}
