package projector

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

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

// One message with Nats-Rollup: all, on a stream that permits it, erases everything else. That is
// said until the stream has it again, over a restart too, and nothing of it is forgotten.
func TestRollUpOfEverything(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.AllowRollup = true })
	s.start()
	var evs []events.Event
	for _, e := range eventstest.Entries(50, 1) {
		evs = append(evs, eventstest.Listed(e, 1))
	}
	s.publish(evs[:40]...)
	evs[0].ID = "again"
	digest := s.reach(s.publish(evs[0])).Digest()
	s.send(evs[1].Data.Subject().String(), "no event", nats.Header{"Nats-Rollup": {"all"}})
	lost := func(n int) func(Progress) bool {
		return func(p Progress) bool {
			return p.SubjectsLost == n && strings.Contains(p.LastError, fmt.Sprintf("has lost %d subjects", n)) &&
				strings.Contains(p.LastError, "registry recover") && !p.Frozen && p.CaughtUp
		}
	}
	s.progress("39 are lost", lost(39))
	s.mustStop()
	s.start()
	s.progress("39 are lost after a restart", lost(39))
	s.reach(s.publish(evs[40:]...))
	s.progress("39 are lost among new ones", lost(39))
	s.mustStop()
	if n := s.model.View().NumSubjects(); n != 50 {
		t.Errorf("the model has %d subjects", n)
	}
	s.start()
	s.progress("39 are lost after another restart", lost(39))
	for i := range evs[:40] {
		evs[i].ID += "once more"
	}
	s.reach(s.publish(evs[:40]...))
	s.progress("all are back", func(p Progress) bool { return p.SubjectsLost == 0 && p.LastError == "" })
	if s.log.count("has every subject again") != 1 {
		t.Error("the end is not logged")
	}
	if digest == s.model.View().Digest() {
		t.Error("nothing was published")
	}
}

// A single subject is missed too, though the stream has more than the model: those of rejected
// events.
func TestOneSubjectLost(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	s.start()
	entries := eventstest.Entries(20, 1)
	for i, e := range entries {
		s.publish(eventstest.Listed(e, 1))
		s.send(fmt.Sprint("registry.x.", i), "no event", nil)
	}
	s.reach(s.send("registry.x.20", "no event", nil))
	sent := time.Now()
	s.progress("polled", func(p Progress) bool { return p.AsOf.After(sent) })
	s.purge("registry.x.20")
	s.purge(entries[3].Subject().String())
	s.progress("one is lost", func(p Progress) bool { return p.SubjectsLost == 1 })
	e := eventstest.Listed(entries[3], 2)
	s.publish(e)
	s.progress("it is back", func(p Progress) bool { return p.SubjectsLost == 0 && p.LastError == "" })
}

// A subject that was lost while no server ran is missed at the start, though the stream has more
// subjects than the model: those of rejected events and of donations that were removed.
func TestLossBeforeStart(t *testing.T) {
	s := newSystem(t)
	s.start()
	entries := eventstest.Entries(20, 1)
	for i, e := range entries {
		s.publish(eventstest.Listed(e, 1))
		s.send(fmt.Sprint("registry.x.", i), "no event", nil)
		s.publish(events.Event{ID: fmt.Sprint("d", i), Source: "test", Type: events.TypeDonationRemoved,
			Data: events.DonationRemoval{Revision: 1, Time: eventstest.Start(), DonationID: fmt.Sprint("d", i)}})
	}
	s.reach(s.publish(eventstest.Listed(entries[0], 2)))
	s.mustStop()
	s.purge(entries[3].Subject().String())
	s.start()
	s.progress("one is lost", func(p Progress) bool {
		return p.SubjectsLost == 1 && strings.Contains(p.LastError, "has lost 1 subjects")
	})
	s.publish(eventstest.Listed(entries[3], 2))
	s.progress("it is back", func(p Progress) bool { return p.SubjectsLost == 0 && p.LastError == "" })
}

// Nothing in normal operation is taken for a loss: listings, delistings and what is erased after
// them, view totals with and without an entry, donations that are removed, rejected events, and an
// operator who purges the subjects of these.
func TestNoLoss(t *testing.T) {
	s := newSystem(t)
	s.start()
	random := rand.New(rand.NewPCG(1, 2))
	entries := eventstest.Entries(60, 4)
	last := uint64(0)
	for i := range 1500 {
		e, id := entries[random.IntN(len(entries))], fmt.Sprint("e", i)
		donation := fmt.Sprint("d", random.IntN(20))
		rejected := fmt.Sprint("registry.x.", random.IntN(20))
		event := func(of events.Type, data events.Data) {
			last = s.publish(events.Event{ID: id, Source: "test", Type: of, Data: data})
		}
		switch random.IntN(8) {
		case 0, 1:
			last = s.publish(eventstest.Listed(e, i))
		case 2:
			event(events.TypeDelisted, events.Delisting{Revision: 1, Time: eventstest.Start(), List: e.List, EntryID: e.EntryID})
		case 3:
			event(events.TypeViewsCounted, events.Views{Revision: 1, List: e.List, EntryID: e.EntryID, Views: int64(i)})
		case 4:
			event(events.TypeDonationUpdated, events.Donation{Revision: 1, DonationID: donation, Status: "pending", Amount: "1", Currency: "PLN",
				CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()})
		case 5:
			event(events.TypeDonationRemoved, events.DonationRemoval{Revision: 1, Time: eventstest.Start(), DonationID: donation})
		case 6:
			last = s.send(rejected, "no event", nil)
		case 7:
			s.purge(rejected)
		}
		if n := s.p.Progress().SubjectsLost; n > 0 {
			t.Fatalf("%d lost after %d steps", n, i)
		}
	}
	s.reach(last)
	s.progress("well", func(p Progress) bool { return p.Lag == 0 && p.SubjectsNotErased == 0 && p.LastError == "" })
	counted := func(when string) {
		t.Helper()
		s.p.Inspect(func(m *readmodel.Model) {
			if n, all := m.View().NumSubjects(), m.Inventory().Len(); n != all || n == 0 {
				t.Errorf("%s: %d subjects, %d records", when, n, all)
			}
		})
	}
	counted("running")
	s.mustStop()
	s.start()
	s.progress("well after a restart", func(p Progress) bool { return p.CaughtUp && p.Connected && p.Lag == 0 && p.LastError == "" })
	counted("after a restart")
	s.mustStop()
	if s.log.count("lost subjects") > 0 {
		t.Error("a loss was logged")
	}
}
