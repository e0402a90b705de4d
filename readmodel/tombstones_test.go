package readmodel

import (
	"fmt"
	"runtime"
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// A tombstone takes at most 150 bytes of memory, the feed's share included, where ids are UUIDs or shorter, at any number of
// them.
func TestTombstoneMemory(t *testing.T) {
	if eventstest.RaceDetector {
		t.Skip("its memory is not the program's")
	}
	for _, id := range []string{"%024x", "0a0b0c0d-1111-2222-3333-%012x"} {
		m, most := New(), 0.0
		before := heap()
		for n := 1; n <= 80_000; n++ {
			m.Apply([]Record{{Subject: events.Subject{Kind: events.KindEntry, List: events.Servers, ID: fmt.Sprintf(id, n)},
				Sequence: uint64(1<<24 + n), Revision: 1, Removed: true}}, uint64(n))
			if n >= 40_000 && n%4000 == 0 {
				most = max(most, float64(int64(heap()-before))/float64(n))
			}
		}
		t.Logf("ids like %s: up to %.1f bytes each", fmt.Sprintf(id, 7), most)
		if most > 150 {
			t.Errorf("a tombstone takes %.1f bytes, want at most 150", most)
		}
		if got := m.View().Tombstones(events.Servers); got != 80_000 {
			t.Errorf("%d tombstones", got)
		}
		runtime.KeepAlive(m)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// What a store keeps of a removal is read back; of anything cut short or longer, nothing is.
func FuzzDecodeRemoval(f *testing.F) {
	k := events.Subject{Kind: events.KindEntry, List: events.Legit, ID: "an-id_09"}
	r := NewRenderer()
	good := r.Render(300, events.Delisting{List: k.List, EntryID: k.ID, Revision: 7}).AppendValue(nil)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(good, 0))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, value []byte) {
		gone, err := DecodeState(k, true, value)
		if err != nil {
			return
		}
		written := r.Render(gone.Sequence, gone.Data).AppendValue(nil)
		if again, err := DecodeState(k, true, written); err != nil || again != gone || gone.Data.Subject() != k {
			t.Errorf("%x is %+v, written %x is %+v, %v", value, gone, written, again, err)
		}
		for n := range written {
			if _, err := DecodeState(k, true, written[:n]); err == nil {
				t.Errorf("%x is a removal", written[:n])
			}
		}
		if _, err := DecodeState(k, true, append(written, 0)); err == nil {
			t.Errorf("%x and more is a removal", written)
		}
	})
}

// BenchmarkTombstones sets and removes one, among a million.
func BenchmarkTombstones(b *testing.B) {
	before := heap()
	table := newTombstones()
	apply := func(list int, r Record) {
		was, slot := table.lists[list].get(r.Subject.ID)
		table.apply(list, &r, was, slot)
	}
	set := func(list int, id string, i int) {
		k := events.Subject{Kind: events.KindEntry, List: events.Lists()[list], ID: id}
		apply(list, Record{Subject: k, Sequence: uint64(i), Revision: 1, Removed: true})
	}
	remove := func(id string) { apply(0, Record{Subject: events.Subject{List: events.Scammers, ID: id}}) }
	for i := range 1_000_000 {
		set(i%3, fmt.Sprintf("%024x", i), i)
	}
	b.ReportMetric(float64(int64(heap()-before))/1e6, "B/tombstone")
	b.Run("listed", func(b *testing.B) { // what an event of an entry that is listed costs
		for i := 0; b.Loop(); i++ {
			remove("an-entry-that-is-listed1")
		}
	})
	b.Run("delisted", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			set(0, "an-entry-that-comes-and", i)
			remove("an-entry-that-comes-and")
		}
	})
}
