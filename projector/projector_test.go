package projector

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// Live: from an empty broker on, each event becomes visible, and the store follows.
func TestLive(t *testing.T) {
	s := newSystem(t)
	s.start()
	s.progress("caught up with nothing", func(p Progress) bool { return p.CaughtUp && p.Connected && p.LastError == "" })
	evs := eventstest.Events(300, 1)
	last := s.publish(evs[:100]...)
	if v := s.reach(last); v.NumEntries(events.Scammers) == 0 {
		t.Error("nothing on the list")
	}
	last = s.publish(evs[100:]...)
	s.reach(last)
	s.progress("all dealt with", func(p Progress) bool {
		return p.Checkpoint == last && p.LastSequence == last && p.Lag == 0 && p.LagSeconds == 0 &&
			p.Applied == 300 && p.Saved == last && p.LastError == "" && !p.AsOf.IsZero()
	})
	s.inspect()
}

// The stream that the projector makes is the contract's.
func TestCreatesStreams(t *testing.T) {
	s := newSystem(t)
	s.start()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp })
	info := s.info()
	epoch := info.Config.Metadata[events.MetadataEpoch]
	want := publish.StreamConfig(events.DefaultStream, 1, events.DefaultHistory, epoch)
	if info.Config.MaxMsgsPerSubject != want.MaxMsgsPerSubject || !info.Config.DenyDelete || epoch == "" {
		t.Errorf("stream made: %+v", info.Config)
	}
	if p := s.p.Progress(); p.StreamEpoch != epoch || !p.StreamCreated.Equal(info.Created) || p.Stream != events.DefaultStream {
		t.Errorf("identity in the progress: %+v", p)
	}
	s.until("the stream of rejected events", func() bool {
		_, err := s.js.Stream(context.Background(), events.RejectedStream)
		return err == nil
	})
}

// Restarts continue behind the saved checkpoint and read nothing twice.
func TestRestart(t *testing.T) {
	s := newSystem(t)
	evs := eventstest.Events(120, 2)
	for part := range 4 {
		s.start()
		s.reach(s.publish(evs[part*30 : (part+1)*30]...))
		s.mustStop()
	}
	s.start()
	last := s.info().State.LastSeq
	s.progress("caught up at once", func(p Progress) bool { return p.CaughtUp && p.Checkpoint == last && p.Applied == 0 })
	s.inspect()
}

// A long backlog is caught up with in bulk, and before its end nothing is served (promise 7). That
// what a crash would leave behind does not pass for the whole, the simulation tests.
func TestCatchUp(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	last := s.publish(eventstest.Events(bulkFrom+bulkFrom/4, 3)...)
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	defer release() // else a failure would wait forever
	s.wrap = func(st Store) Store {
		return storeFunc(func(c readmodel.Commit) error {
			<-held
			return st.Save(c)
		})
	}
	s.start()
	s.progress("caught up", func(p Progress) bool {
		if p.Total > 0 && p.Done > p.Total || p.CaughtUp && p.Done != p.Total {
			t.Errorf("%d of %d", p.Done, p.Total)
		}
		if p.CaughtUp != (s.model.View().Sequence() >= last) && p.CaughtUp {
			t.Error("served before the end was reached")
		}
		return p.CaughtUp
	})
	release()
	s.reach(last)
	if n := s.log.Count("caught up with the stream"); n != 1 {
		t.Errorf("caught up %d times", n)
	}
	s.inspect()
}

// Sequences have gaps: superseded messages, those before tombstones, deleted and purged ones.
func TestGaps(t *testing.T) {
	s := newSystem(t)
	stream := eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.DenyDelete, c.MaxMsgsPerSubject = false, 2 })
	s.publish(changes(80, 5)...)
	last := s.publish(changes(80, 6)...)
	for _, seq := range []uint64{1, 3, last - 2} {
		if err := stream.DeleteMsg(context.Background(), seq); err != nil {
			t.Logf("message %d is gone already: %v", seq, err)
		}
	}
	s.start()
	s.reach(last)
	s.reach(s.publish(changes(80, 7)...))
	s.inspect()
}

// changes makes events about few subjects, removals among them.
func changes(n int, seed uint64) []events.Event {
	r := rand.New(rand.NewPCG(seed, 1))
	entries := eventstest.Entries(12, 9)
	var out []events.Event
	for i := range n {
		e := entries[r.IntN(len(entries))]
		id := fmt.Sprint("change-", seed, "-", i)
		switch r.IntN(5) {
		case 0:
			out = append(out, events.Event{ID: id, Source: "test", Type: events.TypeDelisted,
				Data: events.Delisting{Revision: 1, List: e.List, EntryID: e.EntryID}})
		case 1:
			out = append(out, events.Event{ID: id, Source: "test", Type: events.TypeViewsCounted,
				Data: events.Views{Revision: 1, List: e.List, EntryID: e.EntryID, Views: int64(i)}})
		default:
			e.Name = fmt.Sprint("Nazwa ", i)
			out = append(out, events.Event{ID: id, Source: "test", Type: events.TypeAmended, Data: e})
		}
	}
	return out
}

// The last messages of the stream have been erased: the checkpoint becomes the stream's end, before
// the start and while running, else a start would never be caught up.
func TestErasedTail(t *testing.T) {
	for _, erased := range []uint64{1, 2, 10} {
		t.Run(fmt.Sprint(erased, " of 10"), func(t *testing.T) {
			s := newSystem(t)
			stream := eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.DenyDelete = false })
			last := s.publish(eventstest.Events(10, 1)...)
			for n := range erased {
				require.NoError(t, stream.DeleteMsg(context.Background(), last-n))
			}
			s.start()
			s.reach(last)
			s.progress("no lag", func(p Progress) bool { return p.Lag == 0 && p.LastSequence == last && p.LastError == "" })
			last = s.publish(eventstest.Events(15, 1)[10:]...)
			s.reach(last)
			s.inspect()
		})
	}
}

// While running: what is erased before the projector has seen it leaves no lag behind.
func TestErasedWhileRunning(t *testing.T) {
	s := newSystem(t)
	stream := eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.DenyDelete = false })
	s.start()
	s.reach(s.publish(eventstest.Events(10, 1)...))
	s.mustStop()
	last := s.publish(eventstest.Events(12, 1)[10:]...)
	s.start()
	s.reach(last)
	require.NoError(t, stream.Purge(context.Background()))
	for n := range 3 { // published and erased between two polls, most likely before it is received
		last = s.publish(eventstest.Events(20+n, 1)[19+n])
		require.NoError(t, stream.Purge(context.Background()))
	}
	s.reach(last)
	s.progress("no lag, and what is lost is said", func(p Progress) bool {
		return p.Lag == 0 && p.Unpublished == s.model.View().NumSubjects() && strings.Contains(p.LastError, "registry recover")
	})
}

// A purged stream that never held anything else: caught up at its end, with nothing.
func TestPurgedStream(t *testing.T) {
	s := newSystem(t)
	stream := eventstest.Stream(t, s.js)
	last := s.publish(eventstest.Events(10, 1)...)
	require.NoError(t, stream.Purge(context.Background()))
	s.start()
	s.reach(last)
	s.mustStop()
	s.start() // the checkpoint without a message is no reason to freeze
	s.progress("caught up again", func(p Progress) bool { return p.CaughtUp && p.Connected && !p.Frozen() })
	s.reach(s.publish(eventstest.Events(11, 1)[10:]...))
	s.inspect()
}

// Promises 1 and 4 by random histories: events good and bad, batches, restarts, purges of subjects.
func TestRandomHistory(t *testing.T) {
	s := newSystem(t)
	s.start()
	n := uint64(0)
	rapid.Check(t, func(r *rapid.T) {
		for range rapid.IntRange(1, 3).Draw(r, "steps") {
			n++
			switch rapid.SampledFrom([]string{"changes", "changes", "bad", "restart"}).Draw(r, "step") {
			case "changes":
				s.publish(changes(rapid.IntRange(1, 30).Draw(r, "n"), 1000+n)...)
			case "bad":
				eventstest.PublishRaw(t, s.js, "registry.scammers.bad", []byte("{"))
			case "restart":
				s.mustStop()
				s.start()
			}
		}
	})
	last := s.info().State.LastSeq
	s.reach(last)
	s.inspect()
}

// storeFunc is a Store.
type storeFunc func(readmodel.Commit) error

func (f storeFunc) Save(c readmodel.Commit) error { return f(c) }

func (f storeFunc) State(events.Subject) (s readmodel.State, ok bool, err error) {
	return s, false, nil
}

var _ Store = (*snapshots.Store)(nil)
