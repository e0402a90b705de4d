package projector

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/projector/lineage"
)

// lastOf returns the last message on a subject.
func (s *system) lastOf(subject string) leader.Message {
	s.t.Helper()
	m, err := leader.Stream{JS: s.js, Name: events.DefaultStream}.LastMessage(s.t.Context(), subject)
	require.NoError(s.t, err)
	return m
}

// holds reports whether the last message on the subject of d is d.
func (s *system) holds(d events.Data) bool {
	s.t.Helper()
	m := s.lastOf(d.Subject().String())
	e, err := m.Event()
	return err == nil && events.Compare(e.Data, d) == 0
}

// displacements are what makes the stream forget a state: more messages than it keeps of a subject.
func displacements() map[string]func(s *system, d events.Data) uint64 {
	repeat := func(publish func(i int) uint64) (last uint64) {
		for i := range events.DefaultHistory {
			last = publish(i)
		}
		return last
	}
	return map[string]func(s *system, d events.Data) uint64{
		"superseded": func(s *system, d events.Data) uint64 {
			return repeat(func(i int) uint64 {
				var old events.Data = eventstest.Entries(1, 3)[0]
				switch d.(type) {
				case events.Views:
					old = events.Views{List: d.Subject().List, EntryID: d.Subject().ID, Views: 99}
				case events.Donation, events.DonationRemoval:
					old = donationOf(d.Subject().ID)
				}
				e := events.StateEvent(events.Revised(old, int64(i+1)))
				e.ID = events.NewEventID()
				return eventstest.Publish(s.t, s.js, e)
			})
		},
		"broken": func(s *system, d events.Data) uint64 {
			return repeat(func(int) uint64 {
				return eventstest.PublishRaw(s.t, s.js, d.Subject().String(), []byte("bad"))
			})
		},
	}
}

func donationOf(id string) events.Donation {
	return events.Donation{DonationID: id, Status: "pending", Amount: "1", Currency: "PLN", CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}
}

// Neither five old nor five broken messages push a state out of the stream: a server that starts
// from nothing knows it.
func TestPutBack(t *testing.T) {
	entry := eventstest.Entries(1, 3)[0]
	removed := events.Delisting{List: entry.List, EntryID: entry.EntryID}
	for name, d := range map[string]events.Data{
		"listing": entry, "tombstone": removed, "donation": donationOf("d1"),
		"removed donation": events.DonationRemoval{DonationID: "d1"},
		"views":            events.Views{List: entry.List, EntryID: entry.EntryID, Views: 7},
	} {
		for how, displace := range displacements() {
			for _, stopped := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/stopped=%v", name, how, stopped), func(t *testing.T) {
					s := newSystem(t)
					s.start()
					d := events.Revised(d, 1000)
					s.reach(eventstest.Publish(t, s.js, events.StateEvent(d)))
					if stopped {
						s.mustStop()
					}
					displace(s, d)
					if stopped {
						s.start()
					}
					s.until("the state is the last message", func() bool { return s.holds(d) })
					m := s.lastOf(d.Subject().String())
					require.Empty(t, m.ID)
					s.reach(m.Sequence)
					if events.IsRemoval(d) {
						s.until("erased behind it", func() bool { return s.counts()[d.Subject().String()] == 1 })
					}
					s.progress("nothing is wrong", func(p Progress) bool {
						return p.LastError == "" && p.Unpublished == 0 && p.SubjectsNotErased == 0
					})
					s.inspect()
				})
			}
		}
	}
}

// Neither push they the marker of a history out of the stream, nor does an older one: a server that
// starts from nothing has the history's name.
func TestPutBackMarker(t *testing.T) {
	old := events.History{Name: "old", Kind: events.HistoryNew, Follows: []string{"before"}, Revision: 4}
	for _, h := range []events.History{
		{Name: "newer", Follows: []string{"before"}, Kind: events.HistoryNew, Revision: 5},
		{Name: "fork", Kind: events.HistoryFork, Revision: 5},
	} {
		for how, payload := range map[string]func() ([]byte, error){
			"broken": func() ([]byte, error) { return []byte("bad"), nil },
			"older":  func() ([]byte, error) { return events.EncodeHistory(old) },
		} {
			for _, stopped := range []bool{false, true} {
				if !t.Run(fmt.Sprintf("%s/%s/stopped=%v", h.Name, how, stopped), func(t *testing.T) {
					s := newSystem(t)
					s.tune = func(c *Config) { c.Markers = true }
					s.start()
					at, err := lineage.Begin(t.Context(), leader.Stream{JS: s.js, Name: events.DefaultStream}, h, 0)
					require.NoError(t, err)
					s.reach(at)
					if stopped {
						s.mustStop()
					}
					for range events.DefaultHistory {
						bad, err := payload()
						require.NoError(t, err)
						eventstest.PublishRaw(t, s.js, events.HistorySubject, bad)
					}
					if stopped {
						s.start()
					}
					s.until("the marker is the last message", func() bool {
						m, err := events.DecodeHistory(s.lastOf(events.HistorySubject).Data)
						return err == nil && m.Name == h.Name && m.Kind == h.Kind && slices.Equal(m.Follows[:len(h.Follows)], h.Follows)
					})
					m := s.lastOf(events.HistorySubject)
					require.Empty(t, m.ID)
					s.reach(m.Sequence)
					require.Equal(t, h.Name, s.p.Progress().HistoryName())
					s.inspect()
				}) {
					return // the others would wait as long
				}
			}
		}
	}
}

// Nothing is published where the last message is the true state, where nothing is known of the
// subject, and by a server that may not.
func TestPutBackNothing(t *testing.T) {
	s := newSystem(t)
	s.start()
	entries := eventstest.Entries(3, 3)
	eventstest.PublishRaw(t, s.js, entries[0].Subject().String(), []byte("bad"))
	for range 3 { // superseded by what follows
		s.publish(eventstest.Listed(entries[1], 1), eventstest.Listed(entries[1], 2))
	}
	last := s.publish(eventstest.Listed(entries[2], 1))
	s.reach(last)
	s.progress("rejected", func(p Progress) bool { return p.Rejected == 1 })
	for _, e := range entries {
		s.p.restorer.add(e.Subject().String(), 1)
	}
	s.until("looked at", func() bool { s.p.restorer.mu.Lock(); defer s.p.restorer.mu.Unlock(); return !s.waits() })
	require.Equal(t, last, s.info().State.LastSeq)
	require.Zero(t, s.p.Progress().PutBack)
	s.mustStop()

	s.tune = func(c *Config) { c.Erase = func() bool { return false } }
	s.start()
	known := s.lastOf(entries[1].Subject().String())
	e, err := known.Event()
	require.NoError(t, err)
	old := events.StateEvent(events.Revised(e.Data, 1))
	old.ID = events.NewEventID()
	last = eventstest.Publish(t, s.js, old)
	s.reach(last)
	s.progress("counted", func(p Progress) bool { return p.Superseded == 1 })
	s.until("left to another server", func() bool { s.p.restorer.mu.Lock(); defer s.p.restorer.mu.Unlock(); return !s.waits() })
	require.Zero(t, s.p.Progress().Unpublished, "the stream still has it")
	require.Equal(t, last, s.info().State.LastSeq)
}

// waits reports whether the restorer has something to look at. The caller holds its mutex.
func (s *system) waits() bool {
	for _, d := range s.p.restorer.subjects {
		if d.waits {
			return true
		}
	}
	return false
}

// A message that arrives after the last one was read is not followed by an older state.
func TestPutBackConflict(t *testing.T) {
	s := newSystem(t)
	s.start()
	e := eventstest.Entries(1, 3)[0]
	first := s.publish(eventstest.Listed(e, 1))
	last := s.publish(eventstest.Listed(e, 2))
	s.reach(last)
	payload, err := events.Encode(events.StateEvent(e))
	require.NoError(t, err)
	again, err := s.p.restorer.publish(t.Context(), e.Subject().String(), "", payload, 1, first)
	require.Error(t, err)
	require.False(t, again)
	require.Equal(t, last, s.info().State.LastSeq)
}

// A frozen server publishes nothing.
func TestPutBackFrozen(t *testing.T) {
	s := newSystem(t)
	s.start()
	e := events.Revised(eventstest.Entries(1, 3)[0], 1000)
	s.publish(eventstest.Events(20, 2)...)
	s.reach(eventstest.Publish(t, s.js, events.StateEvent(e)))
	require.NoError(t, s.js.DeleteStream(t.Context(), events.DefaultStream))
	eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{"registry-epoch": "other"} })
	last := displacements()["superseded"](s, e)
	s.progress("frozen", func(p Progress) bool { return p.Frozen() })
	s.p.restorer.mu.Lock()
	s.p.restorer.subjects[e.Subject().String()] = &displaced{waits: true, sequence: 1}
	s.p.restorer.mu.Unlock()
	_, err := s.p.restorer.step(t.Context())
	require.NoError(t, err)
	require.Equal(t, last, s.info().State.LastSeq)
}

// Repetitions of one subject's state become rarer, from one a second to one in ten minutes, and a
// subject that is left alone is forgotten.
func TestPutBackPauses(t *testing.T) {
	r := newRestorer(&Projector{cfg: Config{Erase: func() bool { return true }, RetryEvery: time.Second}})
	var pauses []time.Duration
	for now := time.Now(); len(pauses) < 12; {
		r.add("s", 1)
		some, wait := r.next(now)
		if len(some) == 0 {
			now = now.Add(wait)
			some, _ = r.next(now)
		}
		require.Equal(t, []string{"s"}, some)
		r.looked("s", true, nil)
		pauses = append(pauses, r.subjects["s"].pause/time.Second)
		r.subjects["s"].due = now.Add(r.subjects["s"].pause)
	}
	require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600}, pauses)
	r.next(r.subjects["s"].due.Add(lastPause))
	require.Empty(t, r.subjects)
}

// What has been applied and not saved is not compared with the store, although the saved checkpoint,
// which is from before a rewind, is greater.
func TestPutBackWaitsForTheStore(t *testing.T) {
	s := newSystem(t)
	s.tune = func(c *Config) { c.SaveEvery = time.Hour }
	s.start()
	e := eventstest.Entries(1, 3)[0]
	eventstest.Publish(t, s.js, events.StateEvent(events.Revised(e, 7)))
	last := eventstest.Publish(t, s.js, events.StateEvent(events.Revised(e, 6)))
	s.progress("applied", func(p Progress) bool { return p.Checkpoint == last })
	s.p.tracker.update(func(p *Progress) { p.Saved = 99 })
	_, err := s.p.restorer.restore(t.Context(), e.Subject().String())
	require.ErrorIs(t, err, errNotYet)
}

// A process that ends during a look leaves the subject to the next one.
func TestLookUnderWay(t *testing.T) {
	r := newRestorer(&Projector{cfg: Config{Erase: func() bool { return true }, RetryEvery: time.Second}})
	look := func() {
		some, _ := r.next(time.Now().Add(time.Hour))
		require.Equal(t, []string{"s"}, some)
	}
	r.add("s", 5)
	look()
	require.EqualValues(t, 4, r.restored(9))
	r.add("s", 7)
	r.looked("s", false, nil) // it may not have seen 7
	require.EqualValues(t, 4, r.restored(9))
	look()
	r.looked("s", false, errNotYet)
	require.EqualValues(t, 4, r.restored(9))
	look()
	r.looked("s", false, nil)
	require.EqualValues(t, 9, r.restored(9))
}

// An earlier message with a greater revision is not erased by a removal that is not true.
func TestEraseOnlyWhatIsOlder(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	e := eventstest.Entries(1, 3)[0]
	at := func(d events.Data, revision int64) events.Event {
		ev := events.StateEvent(events.Revised(d, revision))
		ev.ID = events.NewEventID()
		return ev
	}
	gone := events.Delisting{List: e.List, EntryID: e.EntryID}
	eventstest.Publish(t, s.js, at(e, 9), at(e, 2), at(gone, 3))
	s.open()
	defer s.nc.Close()
	defer s.store.Close()
	s.until("connected", s.nc.IsConnected)
	erase := func(sequence uint64) {
		of := tombstone{subject: e.Subject().String(), sequence: sequence}
		require.NoError(t, s.p.eraser.look(t.Context(), &of))
		require.NoError(t, s.p.eraser.purge(t.Context(), &of))
	}
	erase(3)
	require.EqualValues(t, 3, s.info().State.Msgs)
	eventstest.Publish(t, s.js, at(gone, 9)) // of one revision the removal is true
	erase(4)
	require.EqualValues(t, 1, s.info().State.Msgs)
}

// A removal that comes too late to be heeded is rejected, counted, and followed by what is true.
func TestUnheededRemoval(t *testing.T) {
	s := newSystem(t)
	s.start()
	e := eventstest.Entries(1, 3)[0]
	e.Verified = true
	d := events.Revised(e, 8)
	s.reach(eventstest.Publish(t, s.js, events.StateEvent(d)))
	late := events.StateEvent(events.Delisting{List: e.List, EntryID: e.EntryID, Revision: 7})
	eventstest.Publish(t, s.js, late)
	s.progress("rejected", func(p Progress) bool {
		return p.Rejected == 1 && p.Unheeded == 1 && p.Superseded == 0 && p.PutBack == 1
	})
	s.until("put back", func() bool { return s.holds(d) })
	require.Contains(t, s.log.String(), "known revision 8")

	// A new replica counts no old one, but the next.
	s.mustStop()
	s.path = filepath.Join(t.TempDir(), "replica.db")
	s.start()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp && p.Applied > 0 && p.Unheeded == 0 })
	eventstest.Publish(t, s.js, events.StateEvent(events.Delisting{List: e.List, EntryID: e.EntryID, Revision: 6}))
	s.progress("counted", func(p Progress) bool { return p.Unheeded == 1 })
}
