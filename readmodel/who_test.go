package readmodel

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
)

// whoNames are few and alike, so that random entries have the names of others.
func whoNames() []string {
	return []string{"maja", "Maja", "mаja", "m.aja", "MAJA_", "ma ja", "zenon", "zenоn", "...", "ᴍᴀᴊᴀ", "I-lona", "llona", "ilona"}
}

// An entry with an id, or a name that looks the same without separators, is found, whatever happened
// to the entries before.
func TestWho(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, r, now := New(), NewRenderer(), map[string]events.Entry{}
		for seq := range uint64(rapid.IntRange(1, 30).Draw(t, "changes")) {
			e := events.Entry{
				List:    rapid.SampledFrom([]events.List{events.Scammers, events.Servers, events.Legit}).Draw(t, "list"),
				EntryID: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "entry")), ChatID: fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "chat")),
				Name: rapid.SampledFrom(whoNames()).Draw(t, "name"), Verified: rapid.Bool().Draw(t, "verified"), ReportID: "R",
			}
			key := string(e.List) + " " + e.EntryID
			if rapid.IntRange(0, 4).Draw(t, "delist") == 0 {
				delete(now, key)
				m.Apply([]Record{r.Render(seq+1, events.Delisting{List: e.List, EntryID: e.EntryID})}, seq+1)
				continue
			}
			now[key] = e
			m.Apply([]Record{r.Render(seq+1, e)}, seq+1)
		}
		shown := func(f func(events.Entry) bool) (keys []string) {
			for key, e := range now {
				if (e.List != events.Legit || e.Verified) && f(e) {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			return keys
		}
		for id := range 4 {
			want := shown(func(e events.Entry) bool { return e.ChatID == fmt.Sprint(id) })
			if got := keysOf(m.View().WithID(fmt.Sprint(id))); !slices.Equal(got, want) {
				t.Fatalf("id %d: %v, want %v", id, got, want)
			}
		}
		for _, name := range whoNames() {
			k := lookalike.KeysOf(name)
			want := shown(func(e events.Entry) bool {
				own := lookalike.KeysOf(e.Name)
				return fold(e.Name) == fold(name) || own.Alike(k) || own.Joined().Alike(k.Joined())
			})
			rows, err := withName(context.Background(), m.View(), name)
			if got := keysOf(rows); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%q: %v %v, want %v", name, got, err, want)
			}
		}
	})
}

func withName(ctx context.Context, v *View, name string) (rows []*Row, err error) {
	found, _, err := v.WithNames(ctx, []string{name})
	for _, namesakes := range found {
		for _, n := range namesakes {
			rows = append(rows, n.Row)
		}
	}
	return rows, err
}

func keysOf(rows []*Row) (keys []string) {
	for _, r := range rows {
		keys = append(keys, string(r.List())+" "+r.ID())
	}
	slices.Sort(keys)
	return keys
}

// Reports that nobody has confirmed do not hide one that is confirmed, and names that only look the
// same do not hide those that are.
func TestWhoHidesNobody(t *testing.T) {
	m, r := New(), NewRenderer()
	var records []Record
	add := func(id int, name string, verified bool) {
		e := events.Entry{List: events.Scammers, EntryID: fmt.Sprint(id), ChatID: "1", Name: name, Verified: verified, ReportedAt: time.Unix(int64(id), 0)}
		records = append(records, r.Render(uint64(len(records)+1), e))
	}
	add(0, "bartek", true)
	for i := range 2 * MaxGroup {
		add(1+i, "bartek", false)
	}
	for i := range 2 * MaxGroup {
		add(100+i, "bаrtek", true) // with a Cyrillic а
	}
	m.Apply(records, uint64(len(records)))
	has := func(rows []*Row, id string) bool {
		return slices.ContainsFunc(rows, func(r *Row) bool { return r.ID() == id })
	}
	rows, err := withName(context.Background(), m.View(), "Bartek")
	if err != nil || !has(rows, "0") || len(rows) != 2*MaxGroup {
		t.Errorf("by name: %v %v", keysOf(rows), err)
	}
	if rows := m.View().WithID("1"); len(rows) != 2*MaxGroup || !slices.ContainsFunc(rows, (*Row).Verified) {
		t.Errorf("by id: %v", keysOf(rows))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := withName(ctx, m.View(), "bartek"); err != context.Canceled {
		t.Errorf("given up: %v", err)
	}
}

// A name that is equal but for what is invisible or stands around it is not hidden by newer ones
// that only look like it, and is no look-alike itself.
func TestDressedNamesakesComeFirst(t *testing.T) {
	m, r := New(), NewRenderer()
	var records []Record
	add := func(id int, name string) {
		e := events.Entry{List: events.Scammers, EntryID: fmt.Sprint(id), ChatID: "1", Name: name, Verified: true, ReportID: fmt.Sprint("Z-", id), ReportedAt: time.Unix(int64(id), 0)}
		records = append(records, r.Render(uint64(len(records)+1), e))
	}
	names := []string{"zenek\u200b77", "❤️ zenek77 ❤️", "zenek77 #0", "„Zenek77”", "zenek77#1234"}
	for i, name := range names {
		add(i, name)
	}
	for i := range 2 * MaxGroup {
		add(100+i, "zеnek77") // with a Cyrillic е
	}
	m.Apply(records, uint64(len(records)))
	found, complete, err := m.View().WithNames(context.Background(), []string{"zenek77", "nobody"})
	if err != nil || !complete || len(found[0]) != MaxGroup || len(found[1]) != 0 {
		t.Fatalf("%d and %d namesakes, complete %v, %v", len(found[0]), len(found[1]), complete, err)
	}
	for i, n := range found[0] {
		if n.Alike != (i >= len(names)) {
			t.Errorf("%d: %q alike %v", i, n.Row.Name(), n.Alike)
		}
	}
	for _, number := range []string{"Z-3", "3"} {
		if rows := m.View().WithNumber(number); len(rows) != 1 || rows[0].ID() != "3" {
			t.Errorf("%s: %v", number, keysOf(rows))
		}
	}
	if rows := m.View().WithNumber("Z-9"); len(rows) != 0 {
		t.Errorf("a number that no report has: %v", keysOf(rows))
	}
}

// However many have a name, a look-up reads so many rows of it and says that there are more.
func TestNamesakesAreBounded(t *testing.T) {
	m, r := New(), NewRenderer()
	var records []Record
	for i := range maxNamesakes + 1 {
		records = append(records, r.Render(uint64(i+1), events.Entry{List: events.Scammers, EntryID: fmt.Sprint(i), ChatID: "1", Name: "ania", ReportID: "R"}))
	}
	m.Apply(records, uint64(len(records)))
	found, complete, err := m.View().WithNames(context.Background(), []string{"ania"})
	if err != nil || complete || len(found[0]) != MaxGroup {
		t.Errorf("%d namesakes, complete %v, %v", len(found[0]), complete, err)
	}
}
