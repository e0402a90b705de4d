package readmodel

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// A tombstone takes at most 140 bytes of memory, the feed's share included, where ids are UUIDs or shorter, at any number of
// them.
func TestTombstoneMemory(t *testing.T) {
	if eventstest.RaceDetector {
		t.Skip("its memory is not the program's")
	}
	for _, id := range []string{"%024x", "0a0b0c0d-1111-2222-3333-%012x"} {
		m, most := New(), 0.0
		before := heap()
		for n := 1; n <= 160_000; n++ {
			m.Apply([]Record{{Subject: events.Subject{Kind: events.KindEntry, List: events.Servers, ID: fmt.Sprintf(id, n)},
				Sequence: uint64(1<<24 + n), Removed: true, delisted: time.UnixMilli(1_800_000_000_000)}}, uint64(n))
			if n >= 80_000 && n%4000 == 0 {
				most = max(most, float64(heap()-before)/float64(n))
			}
		}
		t.Logf("ids like %s: up to %.1f bytes each", fmt.Sprintf(id, 7), most)
		if most > 140 {
			t.Errorf("a tombstone takes %.1f bytes, want at most 140", most)
		}
		if got := m.View().Tombstones(events.Servers); got != 160_000 {
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

// A delisting leaves a tombstone, a listing takes it away. Neither is part of the digest.
func TestApplyTombstones(t *testing.T) {
	m, r := New(), NewRenderer()
	gone := func(id string, seq uint64) Record {
		return r.Render(seq, events.Delisting{List: events.Scammers, EntryID: id}).DelistedAt(time.Unix(int64(seq), 0))
	}
	listed := events.Entry{List: events.Scammers, EntryID: "listed", ChatID: "1", Name: "x", ReportID: "r"}
	m.Apply([]Record{r.Render(3, listed)}, 3)
	before := m.View()
	m.Apply([]Record{gone("listed", 4), gone("newer", 5), r.Render(6, listed), gone("newer", 7)}, 10)
	want := []Tombstone{{List: events.Scammers, EntryID: "newer", Sequence: 7, Time: time.Unix(7, 0).UTC()}}
	if got := m.Tombstones(); !slices.Equal(got, want) {
		t.Errorf("tombstones %v, want %v", got, want)
	}
	v := m.View()
	if v.Tombstones(events.Scammers) != 1 || v.NumEntries(events.Scammers) != 1 || v.Digest() != before.Digest() {
		t.Errorf("%d tombstones, %d entries", v.Tombstones(events.Scammers), v.NumEntries(events.Scammers))
	}
}

// What a store keeps of a tombstone is read back; of anything cut short or longer, nothing is.
func FuzzDecodeTombstone(f *testing.F) {
	k := events.Subject{Kind: events.KindEntry, List: events.Legit, ID: "an-id_09"}
	good := Tombstone{List: k.List, EntryID: k.ID, Sequence: 300, Time: time.UnixMilli(1_800_000_000_123).UTC()}.Record().AppendValue(nil)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(good, 0))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, value []byte) {
		stone, err := DecodeTombstone(k, value)
		if err != nil {
			return
		}
		written := stone.Record().AppendValue(nil)
		if again, err := DecodeTombstone(k, written); err != nil || again != stone || stone.Subject() != k {
			t.Errorf("%x is %+v, written %x is %+v, %v", value, stone, written, again, err)
		}
		for n := range written {
			if _, err := DecodeTombstone(k, written[:n]); err == nil {
				t.Errorf("%x is a tombstone", written[:n])
			}
		}
		if _, err := DecodeTombstone(k, append(written, 0)); err == nil {
			t.Errorf("%x and more is a tombstone", written)
		}
	})
}

// BenchmarkTombstones sets and removes one, among a million.
func BenchmarkTombstones(b *testing.B) {
	before := heap()
	table := newTombstones()
	set := func(list int, id string, i int) {
		t := Tombstone{List: events.Lists()[list], EntryID: id, Sequence: uint64(i), Time: time.UnixMilli(int64(i))}
		r := t.Record()
		table.apply(list, &r)
	}
	remove := func(id string) { table.apply(0, &Record{Subject: events.Subject{ID: id}}) }
	for i := range 1_000_000 {
		set(i%3, fmt.Sprintf("%024x", i), i)
	}
	b.ReportMetric(float64(heap()-before)/1e6, "B/tombstone")
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
