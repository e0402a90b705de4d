package projector

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

func delist(e events.Event) events.Event {
	data := e.Data.(events.Entry)
	return events.Event{ID: events.NewEventID(), Source: "/test", Type: events.TypeDelisted,
		Data: events.Delisting{List: data.List, EntryID: data.EntryID}}
}

// A store of a program that kept no tombstones gets them from the stream, once, while its content is served.
func TestOldStoreGetsTombstones(t *testing.T) {
	s := newSystem(t)
	s.start()
	all := eventstest.Events(300, 1)
	s.publish(all...)
	for i := range 60 {
		s.publish(delist(all[i]))
	}
	for i := range 20 {
		all[i].ID += "-again"
	}
	s.reach(s.publish(all[:20]...))
	s.mustStop()
	makeOld(t, s.path)
	// While the program is replaced, somebody leaves and somebody comes back.
	all[25].ID += "-again"
	last := s.publish(delist(all[100]), all[25])

	s.start()
	s.reach(last)
	s.progress("all tombstones are there", func(p Progress) bool { return p.TombstonesAfter == 0 })
	if got := len(s.model.Tombstones()); got != 40 {
		t.Errorf("%d tombstones, want 40", got)
	}
	s.inspect()
	s.start()
	s.progress("caught up at once", func(p Progress) bool { return p.CaughtUp && p.Applied == 0 })
	if n := s.log.count("tombstones that an older program did not keep"); n != 1 {
		t.Errorf("read %d times", n)
	}
}

// The same of a stream that has nothing left: there is nothing to wait for.
func TestOldStoreOfAnEmptyStream(t *testing.T) {
	s := newSystem(t)
	s.start()
	s.reach(s.publish(eventstest.Events(5, 1)...))
	s.mustStop()
	makeOld(t, s.path)
	stream, err := s.js.Stream(t.Context(), events.DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.progress("nothing is missing", func(p Progress) bool { return p.CaughtUp && p.TombstonesAfter == 0 })
	s.mustStop()
	s.start()
	s.progress("known from the start", func(p Progress) bool { return p.CaughtUp })
	if n := s.log.count("tombstones that an older program did not keep"); n != 1 {
		t.Errorf("looked for %d times", n)
	}
}

// The time of a tombstone is the broker's, but for an export's: that is of the delisting that it repeats.
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

// makeOld takes out of a store what format 1 did not have.
func makeOld(t *testing.T, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, l := range events.Lists() {
			if err := tx.DeleteBucket([]byte("tombstones-" + string(l))); err != nil {
				return err
			}
		}
		b := tx.Bucket([]byte("meta"))
		var m map[string]any
		if err := json.Unmarshal(b.Get([]byte("meta"))[4:], &m); err != nil {
			return err
		}
		m["format"] = 1
		counts := m["counts"].(map[string]any)
		for name := range counts {
			if strings.HasPrefix(name, "tombstones") {
				delete(counts, name)
			}
		}
		value, err := json.Marshal(m)
		if err != nil {
			return err
		}
		table := crc32.MakeTable(crc32.Castagnoli)
		sum := crc32.Update(crc32.Update(crc32.Checksum([]byte("meta"), table), table, []byte("meta")), table, value)
		return b.Put([]byte("meta"), append(binary.BigEndian.AppendUint32(nil, sum), value...))
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
