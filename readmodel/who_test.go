package readmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// Whoever has an id, or a name that looks the same without separators, is found, whatever happened
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
			rows, err := m.View().WithName(context.Background(), name)
			if got := keysOf(rows); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%q: %v %v, want %v", name, got, err, want)
			}
		}
	})
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
	rows, err := m.View().WithName(context.Background(), "Bartek")
	if err != nil || !has(rows, "0") || len(rows) != 2*MaxGroup {
		t.Errorf("by name: %v %v", keysOf(rows), err)
	}
	if rows := m.View().WithID("1"); len(rows) != 2*MaxGroup || !slices.ContainsFunc(rows, (*Row).Verified) {
		t.Errorf("by id: %v", keysOf(rows))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.View().WithName(ctx, strings.Repeat("b", 3)); err != nil {
		t.Errorf("without candidates: %v", err)
	}
	if _, err := m.View().WithName(ctx, "bartek"); err != context.Canceled {
		t.Errorf("given up: %v", err)
	}
}
