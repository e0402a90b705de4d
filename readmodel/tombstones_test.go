package readmodel

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// The packed table is a map: after any sets and removals it holds what a map would.
func TestTombstoneTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table tombstones
		twin := map[events.Subject]Tombstone{}
		ids := rapid.OneOf(eventstest.Key(), rapid.Map(rapid.IntRange(0, 60), func(n int) string { return fmt.Sprint("e", n) }))
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			list, id := rapid.IntRange(0, events.NumLists-1).Draw(t, "list"), ids.Draw(t, "id")
			k := events.Subject{Kind: events.KindEntry, List: events.Lists()[list], ID: id}
			if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				table.remove(list, id)
				delete(twin, k)
				continue
			}
			stone := Tombstone{k.List, id, rapid.Uint64().Draw(t, "sequence"),
				fromMillis(rapid.Int64Range(0, 1<<(8*timeSize)-1).Draw(t, "time"))}
			table.set(list, id, stone.Sequence, stone.Time)
			twin[k] = stone
		}
		got := table.all()
		SortTombstones(got)
		want := slices.SortedFunc(maps.Values(twin), func(a, b Tombstone) int {
			i, _ := a.List.Index()
			j, _ := b.List.Index()
			return cmp.Or(i-j, cmp.Compare(a.EntryID, b.EntryID))
		})
		if !slices.Equal(got, want) || table.count() != len(want) {
			t.Fatalf("%d tombstones %v\nwant %v", table.count(), got, want)
		}
		for k, stone := range twin {
			list, _ := k.List.Index()
			if seq, ok := table.get(list, k.ID); !ok || seq != stone.Sequence {
				t.Fatalf("%v: %d %v", k, seq, ok)
			}
		}
	})
}

// What is removed and set over and over does not pile up.
func TestTombstoneTableIsTidied(t *testing.T) {
	var table tombstones
	for n := range 200_000 {
		id := fmt.Sprint("e", n%1000)
		table.set(0, id, uint64(n), time.UnixMilli(int64(n)))
		if n%3 == 0 {
			table.remove(0, id)
		}
	}
	if used := len(table.pages) * pageSize; used > 5*pageSize {
		t.Errorf("%d tombstones take %d bytes", table.count(), used)
	}
}

// A tombstone takes at most 48 bytes of memory where ids are UUIDs or shorter, also right after the table
// has doubled, when most of it is free.
func TestTombstoneMemory(t *testing.T) {
	const n = 114_689 // one more than seven eighths of 2^17
	for _, id := range []struct {
		form string
		most float64
	}{{"%024x", 39}, {"0a0b0c0d-1111-2222-3333-%012x", 48}} {
		m := New()
		before := heap()
		for from := 0; from < n; from += 1000 { // as a projector does it, so that no record is kept
			var records []Record
			for i := from; i < min(from+1000, n); i++ {
				records = append(records, Record{Subject: events.Subject{Kind: events.KindEntry, List: events.Servers, ID: fmt.Sprintf(id.form, i)},
					Sequence: uint64(1<<24 + i), Removed: true, delisted: time.UnixMilli(1_800_000_000_000)})
			}
			m.Apply(records, uint64(from))
		}
		each := float64(heap()-before) / n
		t.Logf("ids like %s: %.1f bytes each", fmt.Sprintf(id.form, 7), each)
		if each > id.most {
			t.Errorf("a tombstone takes %.1f bytes, want at most %g", each, id.most)
		}
		if got := m.View().Tombstones(events.Servers); got != n {
			t.Errorf("%d tombstones, want %d", got, n)
		}
		runtime.KeepAlive(m)
	}
}

// BenchmarkTombstoneMap is the alternative that lost.
func BenchmarkTombstoneMap(b *testing.B) {
	type value struct {
		sequence uint64
		ms       int64
	}
	for b.Loop() {
		before := heap()
		all := map[string]value{}
		for i := range 114_689 {
			all[fmt.Sprintf("%024x", i)] = value{uint64(i), 1}
		}
		b.ReportMetric(float64(heap()-before)/float64(len(all)), "B/tombstone")
		runtime.KeepAlive(all)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// A delisting leaves a tombstone, a listing takes it away, and older delistings that are read again
// change neither.
func TestApplyOld(t *testing.T) {
	m, r := New(), NewRenderer()
	gone := func(id string, seq uint64) Record {
		return r.Render(seq, events.Delisting{List: events.Scammers, EntryID: id}).DelistedAt(time.Unix(int64(seq), 0))
	}
	listed := events.Entry{List: events.Scammers, EntryID: "listed", ChatID: "1", Name: "x", ReportID: "r"}
	m.Apply([]Record{gone("listed", 5), r.Render(6, listed), gone("newer", 7)}, 10)
	before := m.View()
	taken := m.ApplyOld([]Record{gone("listed", 2), gone("newer", 3), gone("lost", 4), r.Render(4, listed), gone("newer", 7)})
	if len(taken) != 1 || taken[0].Subject.ID != "lost" {
		t.Errorf("taken %v", taken)
	}
	want := []Tombstone{{events.Scammers, "lost", 4, time.Unix(4, 0).UTC()}, {events.Scammers, "newer", 7, time.Unix(7, 0).UTC()}}
	if got := m.Tombstones(); !slices.Equal(got, want) {
		t.Errorf("tombstones %v, want %v", got, want)
	}
	v := m.View()
	if v.Tombstones(events.Scammers) != 2 || v.Entries(events.Scammers) != 1 || v.Sequence() != 10 || v.Digest() != before.Digest() {
		t.Errorf("%d tombstones, %d entries at %d", v.Tombstones(events.Scammers), v.Entries(events.Scammers), v.Sequence())
	}
}

// What a store keeps of a tombstone is read back; of anything cut short or longer, nothing is.
func FuzzDecodeTombstone(f *testing.F) {
	k := events.Subject{Kind: events.KindEntry, List: events.Legit, ID: "an-id_09"}
	good := Tombstone{k.List, k.ID, 300, time.UnixMilli(1_800_000_000_123).UTC()}.Record().AppendValue(nil)
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
	var table tombstones
	for i := range 1_000_000 {
		table.set(i%3, fmt.Sprintf("%024x", i), uint64(i), time.UnixMilli(int64(i)))
	}
	b.ReportMetric(float64(len(table.table)*4+len(table.pages)*pageSize)/1e6, "B/tombstone")
	b.Run("listed", func(b *testing.B) { // what an event of an entry that is listed costs
		for i := 0; b.Loop(); i++ {
			table.remove(0, "an-entry-that-is-listed1")
		}
	})
	b.Run("delisted", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			table.set(0, "an-entry-that-comes-and", uint64(i), time.UnixMilli(int64(i)))
			table.remove(0, "an-entry-that-comes-and")
		}
	})
}
