package projector

import (
	"testing"
	"time"

	"example.org/registry/events"
)

// The time of a tombstone is the broker's, but for an export's: that is of the delisting that it
// repeats.
func TestTombstoneTimes(t *testing.T) {
	s := newSystem(t)
	s.start()
	was := time.Date(2020, 2, 3, 4, 5, 6, 7_000_000, time.UTC)
	began := time.Now().Truncate(time.Millisecond)
	var all []events.Event
	for id, source := range map[string]string{"from-a-backend": "/backend", "from-an-export": events.ExportSource} {
		all = append(all, events.Event{ID: events.NewEventID(), Source: source, Type: events.TypeDelisted, Time: was,
			Data: events.Delisting{List: events.Scammers, EntryID: id}})
	}
	s.reach(s.publish(all...))
	s.mustStop()
	for _, stone := range s.model.Tombstones() {
		if exported := stone.EntryID == "from-an-export"; exported != stone.Time.Equal(was) || !exported && stone.Time.Before(began) {
			t.Errorf("%+v", stone)
		}
	}
	if n := s.model.View().Tombstones(events.Scammers); n != 2 {
		t.Errorf("%d tombstones", n)
	}
}
