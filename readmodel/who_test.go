package readmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
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
				Revision: int64(seq + 1),
				List:     rapid.SampledFrom([]events.List{events.Scammers, events.Servers, events.Legit}).Draw(t, "list"),
				EntryID:  fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "entry")), ChatID: fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "chat")),
				Name: rapid.SampledFrom(whoNames()).Draw(t, "name"), Verified: rapid.Bool().Draw(t, "verified"), ReportID: "R",
			}
			key := string(e.List) + " " + e.EntryID
			if rapid.IntRange(0, 4).Draw(t, "delist") == 0 {
				delete(now, key)
				m.Apply([]Record{r.Render(seq+1, events.Delisting{Revision: e.Revision, List: e.List, EntryID: e.EntryID})}, seq+1)
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
			a, err := m.View().Who(context.Background(), &Question{IDs: []string{fmt.Sprint(id)}})
			if got := keysOf(a.IDs[0]); err != nil || !slices.Equal(got, want) {
				t.Fatalf("id %d: %v %v, want %v", id, got, err, want)
			}
		}
		for _, name := range whoNames() {
			literal, core := lookalike.Literal(name), lookalike.Core(name)
			same := shown(func(e events.Entry) bool { return lookalike.Literal(e.Name) == literal })
			alike := shown(func(e events.Entry) bool {
				return slices.ContainsFunc(append(lookalike.Cores(e.Name), lookalike.KeysOf(e.Name).Joined()), core.Alike)
			})
			a, err := m.View().Who(context.Background(), &Question{Literals: []string{literal}, Cores: []lookalike.Keys{core}})
			if got := keysOf(a.Literals[0]); err != nil || !slices.Equal(got, same) {
				t.Fatalf("%q: %v %v, want %v", name, got, err, same)
			}
			if got := keysOf(a.Cores[0]); !isSubset(alike, got) {
				t.Fatalf("like %q: %v, want %v", name, got, alike)
			}
		}
	})
}

func isSubset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// Every name is found as it is, and every name of words is found without what stands around it: what is
// stored and what is asked are made by one function, in one order. Some 1,200 symbols look like letters.
func TestEveryEdgeIsFound(t *testing.T) {
	r := NewRenderer()
	var records []Record
	var names []string
	for c := rune(' ' + 1); c < 0x20000; c++ {
		if !unicode.IsPrint(c) || lookalike.IsWordly(c) {
			continue
		}
		for _, name := range []string{string(c) + "edmund", "edmund" + string(c), string(c) + " edmund " + string(c), string(c)} {
			names = append(names, name)
			records = append(records, r.Render(uint64(len(records)+1), events.Entry{
				Revision: 1,
				List:     events.Scammers, EntryID: fmt.Sprint(len(names)), ChatID: fmt.Sprint(len(names)), Name: name, ReportID: "R"}))
		}
	}
	m := New()
	v := viewOf(m.Apply(records, uint64(len(records))))
	find := func(q Question) Answer {
		a, err := v.Who(context.Background(), &q)
		require.NoError(t, err)
		return a
	}
	x := &v.names
	byCore := func(core lookalike.Keys) map[string]bool {
		ids := map[string]bool{}
		for _, key := range []string{core.Shape, core.Folded} {
			for r := range x.rows.find(x.hashAlike(key)) {
				ids[r.ID()] = true
			}
		}
		return ids
	}
	undecorated := byCore(lookalike.Core("edmund"))
	for i, name := range names {
		a := find(Question{Literals: []string{lookalike.Literal(name)}})
		if !slices.ContainsFunc(a.Literals[0], func(r *Row) bool { return r.Name() == name }) {
			t.Fatalf("%+q is not found", name)
		}
		if id := fmt.Sprint(i + 1); !undecorated[id] && (strings.Contains(name, "edmund") || lookalike.Core(name) != lookalike.Keys{} && !byCore(lookalike.Core(name))[id]) {
			t.Fatalf("%+q is not found by its core", name)
		}
	}
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
		e := events.Entry{Revision: 1, List: events.Scammers, EntryID: fmt.Sprint(id), ChatID: "1", Name: name, Verified: verified, ReportedAt: time.Unix(int64(id), 0)}
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
	q := Question{IDs: []string{"1"}, Literals: []string{"bartek"}, Cores: []lookalike.Keys{lookalike.Core("Bartek")}}
	a, err := m.View().Who(context.Background(), &q)
	if err != nil || !has(a.Literals[0], "0") || len(a.Literals[0]) != MaxGroup+1 {
		t.Errorf("by name: %v %v", keysOf(a.Literals[0]), err)
	}
	for _, rows := range [][]*Row{a.IDs[0], a.Cores[0]} {
		if len(rows) != 2*MaxGroup || !slices.ContainsFunc(rows, (*Row).Verified) {
			t.Errorf("by id, or alike: %v", keysOf(rows))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.View().Who(ctx, &q); err != context.Canceled {
		t.Errorf("given up: %v", err)
	}
}

// A report is found by its number in any case, and by its entry's id.
func TestWhoByNumber(t *testing.T) {
	v, _ := New().Apply([]Record{NewRenderer().Render(1, events.Entry{Revision: 1, List: events.Scammers, EntryID: "e1", ChatID: "1", Name: "x", ReportID: "Z-3"})}, 1)
	a, err := v.Who(context.Background(), &Question{Numbers: []string{"Z-3", "z-3", "e1", "E1", "Z-9"}})
	require.NoError(t, err)
	for i, want := range []int{1, 1, 1, 0, 0} {
		if len(a.Numbers[i]) != want {
			t.Errorf("number %d finds %v, want %d entries", i, keysOf(a.Numbers[i]), want)
		}
	}
}

// However many have a name, a question reads so many rows of it and says that there are more.
func TestNamesakesAreBounded(t *testing.T) {
	m, r := New(), NewRenderer()
	var records []Record
	for i := range maxNamesakes + 1 {
		records = append(records, r.Render(uint64(i+1), events.Entry{Revision: 1, List: events.Scammers, EntryID: fmt.Sprint(i), ChatID: "1", Name: "ania", ReportID: "R"}))
	}
	m.Apply(records, uint64(len(records)))
	a, err := m.View().Who(context.Background(), &Question{Literals: []string{"ania"}, Cores: []lookalike.Keys{lookalike.Core("ania")}})
	if err != nil || !a.MoreLiterals || !a.MoreCores || len(a.Literals[0]) != MaxGroup || len(a.Cores[0]) != MaxGroup {
		t.Errorf("%d and %d namesakes, more %v %v, %v", len(a.Literals[0]), len(a.Cores[0]), a.MoreLiterals, a.MoreCores, err)
	}
}
