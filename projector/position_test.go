package projector

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

func move(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.Rename(from, to))
}

func remove(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(dir))
}

// send publishes a message as it is.
func (s *system) send(subject, data string, header nats.Header) uint64 {
	s.t.Helper()
	ack, err := s.js.PublishMsg(s.t.Context(), &nats.Msg{Subject: subject, Data: []byte(data), Header: header})
	require.NoError(s.t, err)
	return ack.Sequence
}

// purge takes every message of a subject away.
func (s *system) purge(subject string) {
	s.t.Helper()
	stream, err := s.js.Stream(s.t.Context(), events.DefaultStream)
	if err == nil {
		err = stream.Purge(s.t.Context(), jetstream.WithPurgeSubject(subject))
	}
	require.NoError(s.t, err)
}

// backUp copies the broker's directory.
func (s *system) backUp(to string) {
	s.t.Helper()
	s.restartBroker(func() { require.NoError(s.t, os.CopyFS(to, os.DirFS(s.dir))) })
}

// listings are n listings of different entries, in order.
func listings(n int) (evs []events.Event) {
	for i, e := range eventstest.Entries(n, 1) {
		evs = append(evs, eventstest.Listed(e, i+1))
	}
	return evs
}

// begin begins a history that follows others, and publishes what the stream lacks, as registry
// recover does.
func (s *system) begin(follows ...string) string {
	s.t.Helper()
	stream := leader.Stream{JS: s.js, Name: events.DefaultStream}
	_, last, err := lineage.Newest(s.t.Context(), stream, math.MaxUint64)
	require.NoError(s.t, err)
	h := events.History{Name: events.NewEpoch(), Follows: follows, Kind: events.HistoryNew, Revision: int64(last) + 1}
	_, err = lineage.Begin(s.t.Context(), stream, h, last)
	require.NoError(s.t, err)
	return h.Name
}

// publishLacking publishes every state that the stream lacks.
func (s *system) publishLacking() {
	s.t.Helper()
	var lacking []events.Subject
	s.p.Inspect(func(m *readmodel.Model) { lacking = m.Lacking() })
	for _, k := range lacking {
		state, ok, err := s.store.State(k)
		require.NoError(s.t, err)
		require.True(s.t, ok)
		payload, err := events.Encode(events.StateEvent(state.Data))
		require.NoError(s.t, err)
		s.send(k.String(), string(payload), nil)
	}
}

// settled waits until it is known what the stream lacks, and returns the view and the feed.
func (s *system) settled(unpublished int) *readmodel.View {
	s.t.Helper()
	s.progress(fmt.Sprint("unpublished: ", unpublished), func(p Progress) bool {
		return p.CaughtUp && p.Compared && p.Unpublished == unpublished && !p.Frozen() && p.Lag == 0 && s.model.View().Epoch() != ""
	})
	return s.model.View()
}

// fold reads the feed from its beginning, in pages of three, and compares it with the lists.
func (s *system) fold(v *readmodel.View) {
	s.t.Helper()
	shown, last := map[string]bool{}, uint64(0)
	for since := uint64(0); ; {
		page := v.Feed(since, 3, readmodel.MaxFeedPage)
		for _, c := range page.Changes {
			require.Greater(s.t, c.Sequence, last)
			last = c.Sequence
			key := string(c.List) + " " + c.ID
			if delete(shown, key); c.Row != nil {
				shown[key] = true
			}
		}
		if since = page.Until; page.UpToDate {
			break
		}
	}
	want := map[string]bool{}
	v.ShownRows(func(r *readmodel.Row) bool { want[string(r.List())+" "+r.ID()] = true; return true })
	require.Equal(s.t, want, shown)
	require.Equal(s.t, last, v.LastChange())
}

var ownName = regexp.MustCompile(`^[^~]+~[0-9a-f]{8}$`)

// A stream that came back from a backup is read again beside what is shown: nothing is forgotten,
// what is new is applied, what the stream lacks is counted over restarts too, and the feed has a name
// of its own. A marker and the lacking states end that.
func TestRewound(t *testing.T) {
	for _, running := range []bool{true, false} {
		for _, outgrown := range []bool{true, false} {
			t.Run(fmt.Sprintf("running %v, outgrown %v", running, outgrown), func(t *testing.T) {
				s := newSystem(t)
				eventstest.Stream(t, s.js)
				old := filepath.Join(t.TempDir(), "old")
				evs := listings(60)
				s.publish(evs[:20]...)
				s.backUp(old)
				s.publish(evs[20:30]...)
				s.start()
				v := s.reach(30)
				history := v.Epoch()
				if !running {
					s.mustStop()
				}
				s.restartBroker(func() {
					remove(t, s.dir)
					move(t, old, s.dir)
				})
				more := 5
				if outgrown {
					more = 25
				}
				s.publish(evs[30 : 30+more]...)
				if !running {
					s.start()
				}
				v = s.settled(10)
				require.Equal(t, 30+more, v.NumSubjects())
				require.Regexp(t, ownName, v.Epoch())
				sequence, base := v.FeedSequence()
				require.Equal(t, [2]uint64{uint64(30 + more), 10}, [2]uint64{sequence, base})
				s.fold(v)
				p := s.p.Progress()
				require.True(t, p.Rewound)
				require.Contains(t, p.LastError, "registry recover")
				s.publish(evs[55])
				s.until("a new event is applied", func() bool { return s.model.View().NumSubjects() == 31+more })
				require.Equal(t, v.Epoch(), s.model.View().Epoch())

				s.mustStop()
				s.start()
				v = s.settled(10)
				require.True(t, s.p.Progress().Rewound)
				require.Regexp(t, ownName, v.Epoch())
				s.fold(v)
				name := s.begin(history)
				s.publishLacking()
				s.progress("all is published", func(p Progress) bool { return p.Unpublished == 0 && !p.Rewound && p.LastError == "" })
				s.until("the feed's name", func() bool { return s.model.View().Epoch() == name })
				s.fold(s.model.View())
				s.inspect()
			})
		}
	}
}

// A stream that is gone freezes, and so does a new one that is empty; what was read is served. One
// with a marker that follows what was read goes on with it, and what it lacks is counted.
func TestMissing(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			s := newSystem(t)
			s.start()
			v := s.reach(s.publish(listings(10)...))
			if !running {
				s.mustStop()
			}
			require.NoError(t, s.js.DeleteStream(context.Background(), events.DefaultStream))
			if !running {
				s.start()
			}
			missing := func(p Progress) bool {
				return p.FrozenBy == FrozenMissing && p.CaughtUp && strings.Contains(p.LastError, "registry recover --create-stream")
			}
			s.progress("missing", missing)
			eventstest.Stream(t, s.js)
			s.progress("empty and new", func(p Progress) bool {
				return missing(p) && strings.Contains(p.LastError, "empty") || p.LastSequence == 0
			})
			s.progress("still missing", missing)
			require.Equal(t, v.Digest(), s.model.View().Digest())
			name := s.begin(v.Epoch())
			is := s.settled(10)
			require.Equal(t, v.Digest(), is.Digest())
			require.Regexp(t, ownName, is.Epoch())
			s.fold(is)
			s.publishLacking()
			s.settled(0)
			s.until("the feed's name", func() bool { return s.model.View().Epoch() == name })
			s.inspect()
		})
	}
}

// A stream that came back as it was ends the freeze by itself.
func TestMissingComesBack(t *testing.T) {
	s := newSystem(t)
	s.start()
	v := s.reach(s.publish(listings(10)...))
	old := filepath.Join(t.TempDir(), "old")
	s.backUp(old)
	require.NoError(t, s.js.DeleteStream(context.Background(), events.DefaultStream))
	s.progress("missing", func(p Progress) bool { return p.FrozenBy == FrozenMissing })
	s.restartBroker(func() {
		remove(t, s.dir)
		move(t, old, s.dir)
	})
	s.reach(s.publish(others(1)...))
	s.settled(0)
	require.Equal(t, v.Epoch(), s.model.View().Epoch())
	require.Equal(t, 1, s.log.count("thawed"))
}

// Nothing of another registry's stream is applied, whether it is shorter or longer.
func TestForeign(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			s := newSystem(t)
			s.start()
			v := s.reach(s.publish(listings(10)...))
			if !running {
				s.mustStop()
			}
			require.NoError(t, s.js.DeleteStream(context.Background(), events.DefaultStream))
			eventstest.Stream(t, s.js)
			s.publish(others(30)...)
			if !running {
				s.start()
			}
			s.progress("foreign", func(p Progress) bool {
				return p.FrozenBy == FrozenForeign && p.CaughtUp && strings.Contains(p.LastError, "another registry's")
			})
			s.begin("somebody-else")
			s.publish(others(2)...)
			s.progress("still foreign", func(p Progress) bool { return p.FrozenBy == FrozenForeign })
			require.Equal(t, v.Digest(), s.model.View().Digest())
		})
	}
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
	require.Equal(t, 1, s.log.count("reading again from an earlier one"))
	s.inspect()
}

// What was purged of the stream is counted as lacking, is served, and is back with its next message.
func TestPurgedSubjects(t *testing.T) {
	s := newSystem(t)
	s.start()
	evs := listings(20)
	donation := events.Donation{Revision: 1, DonationID: "d1", Status: "pending", Amount: "1", Currency: "PLN",
		CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}
	s.publish(evs...)
	v := s.reach(s.publish(events.Event{ID: "d", Source: "test", Type: events.TypeDonationUpdated, Data: donation}))
	for _, e := range evs[:3] {
		s.purge(e.Data.Subject().String())
	}
	s.purge(donation.Subject().String())
	s.settled(4)
	require.Equal(t, v.Digest(), s.model.View().Digest())
	require.Equal(t, v.Epoch(), s.model.View().Epoch(), "for ten seconds it may be put back")
	s.mustStop()
	s.start()
	is := s.settled(4)
	require.Regexp(t, ownName, is.Epoch())
	s.fold(is)
	s.publishLacking()
	s.settled(0)
	s.until("the feed's name", func() bool { return s.model.View().Epoch() == v.Epoch() })
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
