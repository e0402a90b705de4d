package projector

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// removal returns the event that takes e off its list.
func removal(e events.Entry, id string) events.Event {
	return events.Event{ID: id, Source: "test", Type: events.TypeDelisted, Data: events.Delisting{Revision: 1, List: e.List, EntryID: e.EntryID}}
}

// counts returns how many messages the stream has of each subject.
func (s *system) counts() map[string]uint64 {
	s.t.Helper()
	stream, err := s.js.Stream(s.t.Context(), events.DefaultStream)
	require.NoError(s.t, err)
	info, err := stream.Info(s.t.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(s.t, err)
	return info.State.Subjects
}

// What was said before a delisting or the removal of a donation is erased from the stream, while
// running and at a start, and nothing else is.
func TestErase(t *testing.T) {
	s := newSystem(t)
	entries := eventstest.Entries(40, 3)
	donation := events.Donation{Revision: 1, DonationID: "d1", Status: "pending", Amount: "1", Currency: "PLN", CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}
	var evs []events.Event
	list := func(version int, of ...events.Entry) {
		for _, e := range of {
			evs = append(evs, eventstest.Listed(e, version))
		}
	}
	give := func(id string, version int) {
		d := donation
		d.DonationID = id
		evs = append(evs, events.Event{ID: fmt.Sprint(id, version), Source: "test", Type: events.TypeDonationUpdated, Data: d})
	}
	take := func(id string) {
		evs = append(evs, events.Event{ID: id + "removed", Source: "test", Type: events.TypeDonationRemoved, Data: events.DonationRemoval{Revision: 1, DonationID: id}})
	}
	publish := func() uint64 {
		last := s.publish(evs...)
		evs = nil
		return last
	}
	list(1, entries[:30]...)
	list(2, entries[:30]...)
	give("d1", 1)
	give("d1", 2)
	give("d2", 1)
	give("d2", 2)
	s.start()
	s.reach(publish())
	for i, e := range entries[:10] { // while running
		evs = append(evs, removal(e, fmt.Sprint("running", i)))
	}
	take("d1")
	list(3, entries[0]) // listed again
	s.reach(publish())
	s.progress("erased while running", func(p Progress) bool { return p.SubjectsNotErased == 0 && s.counts()["registry.donations.d1"] == 1 })
	s.until("erased while running", func() bool {
		c := s.counts()
		for i, e := range entries[:10] {
			if want := uint64(1); c[e.Subject().String()] != want && i > 0 || i == 0 && c[e.Subject().String()] != 2 {
				return false
			}
		}
		return true
	})
	s.mustStop()
	for i, e := range entries[10:20] { // while it is stopped
		evs = append(evs, removal(e, fmt.Sprint("stopped", i)))
	}
	take("d2")
	last := publish()
	s.start()
	s.reach(last)
	s.until("erased at the start", func() bool {
		c := s.counts()
		for _, e := range entries[10:20] {
			if c[e.Subject().String()] != 1 {
				return false
			}
		}
		return c["registry.donations.d2"] == 1
	})
	s.progress("nothing waits", func(p Progress) bool { return p.SubjectsNotErased == 0 && p.LastError == "" })
	c := s.counts()
	for _, e := range entries[20:30] {
		if c[e.Subject().String()] != 2 {
			t.Errorf("%s: %d messages", e.Subject(), c[e.Subject().String()])
		}
	}
	if s.model.View().Entry(entries[0].List, entries[0].EntryID) == nil && entries[0].Verified {
		t.Error("an entry that was listed again is gone")
	}
	s.inspect()
}

// TestNextCheck: checks that find nothing purged become rarer, down to one a minute.
func TestNextCheck(t *testing.T) {
	e := &eraser{p: &Projector{cfg: Config{RetryEvery: time.Second}}}
	var waits []time.Duration
	for i := range 8 {
		waits = append(waits, e.nextCheck(i == 6)/time.Second)
	}
	require.Equal(t, []time.Duration{2, 4, 8, 16, 32, 60, 2, 4}, waits)
}

// The lowest waiting sequence bounds Checkpoint.Erased, in whatever order subjects are erased.
func TestErasedUpTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &eraser{most: 1000, waiting: map[string]uint64{}, p: &Projector{}}
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": func(t *rapid.T) {
				e.enqueue(rapid.StringMatching("[a-f]").Draw(t, "subject"), rapid.Uint64Range(1, 100).Draw(t, "sequence"))
			},
			"forget": func(t *rapid.T) {
				some, _ := e.some()
				e.forget(some[:rapid.IntRange(0, len(some)).Draw(t, "n")])
				lowest := uint64(200)
				for _, sequence := range e.waiting {
					lowest = min(lowest, sequence-1)
				}
				if got := e.erased(200); got != lowest {
					t.Fatalf("erased up to %d, want %d", got, lowest)
				}
			},
			"": func(t *rapid.T) {
				for subject, sequence := range e.waiting {
					if e.erased(200) >= sequence {
						t.Fatalf("%s still waits at %d", subject, sequence)
					}
				}
			},
		})
	})
}

// A server starts from a store that has the tombstones, on a stream that nothing was erased of.
func TestEraseAtStart(t *testing.T) {
	s := newSystem(t)
	s.tune = func(c *Config) { c.Erase = nil }
	s.start()
	entries := eventstest.Entries(600, 3) // more than are erased at once
	for _, e := range entries {
		s.publish(eventstest.Listed(e, 1))
	}
	var last uint64
	for i, e := range entries {
		last = s.publish(removal(e, fmt.Sprint("r", i)))
	}
	s.reach(last)
	s.progress("a server that may not erase counts", func(p Progress) bool { return p.SubjectsNotErased == 600 })
	other := newSystemOn(s)
	other.start()
	other.progress("another one erases", func(p Progress) bool { return p.CaughtUp && p.SubjectsNotErased == 0 && len(s.counts()) == 600 })
	s.until("all are erased", func() bool { return s.info().State.Msgs == 600 })
	s.progress("the first one sees it", func(p Progress) bool { return p.SubjectsNotErased == 0 })
	s.inspect()
}

// What was said before a removal is erased after a restart too, though the entry was listed, or the
// donation shown, again before the restart, so that the model knows of no removal.
func TestEraseBeforeRelisting(t *testing.T) {
	s := newSystem(t)
	s.tune = func(c *Config) { c.Erase = nil }
	s.start()
	entries := eventstest.Entries(30, 3)
	donation := func(i int, data events.Data) events.Event {
		of := events.TypeDonationRemoved
		if _, ok := data.(events.Donation); ok {
			of = events.TypeDonationUpdated
		}
		return events.Event{ID: events.NewEventID(), Source: "test", Type: of, Data: data}
	}
	relist := func(from, to int) (last uint64) {
		for i := from; i < to; i++ {
			d := events.Donation{Revision: 1, DonationID: fmt.Sprint("d", i), Status: "pending", Amount: "1", Currency: "PLN",
				CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}
			last = s.publish(eventstest.Listed(entries[i], 1), removal(entries[i], events.NewEventID()), eventstest.Listed(entries[i], 2),
				donation(i, d), donation(i, events.DonationRemoval{Revision: 1, DonationID: d.DonationID}), donation(i, d))
		}
		return last
	}
	s.reach(relist(0, 20))
	s.progress("they wait", func(p Progress) bool { return p.SubjectsNotErased == 40 })
	s.mustStop()
	last := relist(20, 30) // while it is stopped
	s.tune = nil
	s.beforeRun = func(p *Projector) { p.eraser.most = 7 }
	s.start()
	s.reach(last)
	s.until("two messages of each are left", func() bool { return s.info().State.Msgs == 2*60 })
	s.progress("nothing waits", func(p Progress) bool { return p.SubjectsNotErased == 0 && p.LastError == "" })
	for subject, n := range s.counts() {
		if n != 2 {
			t.Errorf("%s: %d messages", subject, n)
		}
	}
	s.until("all removals have been read", func() bool {
		s.p.eraser.mu.Lock()
		defer s.p.eraser.mu.Unlock()
		return s.p.eraser.to == 0 && len(s.p.eraser.waiting) == 0
	})
	last = s.publish(eventstest.Listed(entries[0], 3)) // the next commit says up to where nothing waits
	s.reach(last)
	s.until("saved as erased to the end", func() bool { at := s.store.Checkpoint(); return at.Sequence == last && at.Erased == last })
}

// newSystemOn returns a second projector, with a store of its own, on the broker of s.
func newSystemOn(s *system) *system {
	other := *s
	other.path = filepath.Join(s.t.TempDir(), "registry.db")
	other.tune = nil
	other.log = &eventstest.Log{}
	return &other
}

// A stream that denies purging is logged once, counted, and stops nothing.
func TestEraseIsRefused(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.DenyPurge = true })
	s.start()
	e := eventstest.Entries(1, 3)[0]
	s.reach(s.publish(eventstest.Listed(e, 1), removal(e, "r")))
	s.progress("counted", func(p Progress) bool { return p.SubjectsNotErased == 1 })
	s.until("logged", func() bool { return s.log.Count("cannot be erased") == 1 })
	s.reach(s.publish(eventstest.Listed(e, 2)))
	if s.log.Count("cannot be erased") != 1 || strings.Contains(s.log.String(), e.EntryID) {
		t.Error(s.log.String())
	}
}

// Nothing is purged that lies after the tombstone, nor before a message that is not it: the stream
// may be another one by now.
func TestEraseOnlyBeforeATombstone(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	e := eventstest.Entries(1, 3)[0]
	s.publish(eventstest.Listed(e, 1), removal(e, "r1"), eventstest.Listed(e, 2), eventstest.Listed(e, 3))
	s.open()
	defer s.nc.Close()
	defer s.store.Close()
	s.until("connected", s.nc.IsConnected)
	subject := e.Subject().String()
	for of, last := range map[tombstone]uint64{{subject: subject, sequence: 2}: 1, {subject: subject, sequence: 3}: 0, {subject: subject, sequence: 4}: 0,
		{subject: subject, sequence: 9}: 0, {subject: "registry.scammers.other", sequence: 2}: 0} {
		if err := s.p.eraser.look(t.Context(), &of); err != nil || of.last != last {
			t.Errorf("%+v: %v", of, err)
		}
		require.NoError(t, s.p.eraser.purge(t.Context(), &of))
	}
	if state := s.info().State; state.Msgs != 3 || state.FirstSeq != 2 {
		t.Errorf("%+v", state)
	}
}

// A stream that is made again between the look and the purge loses nothing.
func TestEraseOnlyInItsStream(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	e := eventstest.Entries(1, 3)[0]
	replaced := make(chan struct{})
	again := sync.OnceFunc(func() {
		defer close(replaced)
		require.NoError(t, s.js.DeleteStream(context.Background(), events.DefaultStream))
		eventstest.Stream(t, s.js)
		eventstest.Publish(t, s.js, eventstest.Listed(e, 1), eventstest.Listed(e, 2), eventstest.Listed(e, 3))
	})
	s.tune = func(c *Config) { c.Erase = func() bool { again(); return true } } // it is asked at the end of a look
	s.start()
	s.publish(eventstest.Listed(e, 1), removal(e, "r1"))
	<-replaced
	s.progress("frozen", func(p Progress) bool { return p.Frozen() })
	require.EqualValues(t, 3, s.info().State.Msgs)
}
