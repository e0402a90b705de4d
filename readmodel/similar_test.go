package readmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.org/registry/events"
	"pgregory.net/rapid"
)

// similarIn is who of entries, whose ids and times are their places unless they have some, is similar to the search: "scammers 1 0".
func similarIn(t *testing.T, search CheckQuery, entries ...events.Entry) (similar, results string) {
	t.Helper()
	m, r := New(), NewRenderer()
	for i, e := range entries {
		if e.EntryID == "" {
			e.EntryID, e.ReportedAt = fmt.Sprint(i), time.Unix(int64(i), 0)
		}
		if e.ChatID == "" {
			e.ChatID = "9"
		}
		m.Apply([]Record{r.Render(uint64(i+1), e)}, uint64(i+1))
	}
	c, err := m.View().Check(context.Background(), search)
	if err != nil {
		t.Fatal(err)
	}
	return show(c.Similar), show(c.Groups)
}

func show(groups []Group) string {
	var words []string
	for _, g := range groups {
		words = append(words, string(g.List))
		for _, r := range g.Rows {
			words = append(words, r.ID())
		}
	}
	return strings.Join(words, " ")
}

func scammer(name string) events.Entry {
	return events.Entry{List: events.Scammers, Name: name, Verified: true}
}

func accused(name string) events.Entry { return events.Entry{List: events.Scammers, Name: name} }

// TestSimilar is the contract's rule, clause by clause (API contract, check: similar).
func TestSimilar(t *testing.T) {
	server := events.Entry{List: events.Servers, Name: "paypaI", Verified: true}
	legit := events.Entry{List: events.Legit, Name: "pаypal", Verified: true}
	chat := scammer("paypaI")
	chat.ChatID = "x-paypal"
	a, b := scammer("paypaI"), scammer("paypaI")
	a.EntryID, b.EntryID = "a", "b"
	for _, c := range []struct {
		what, search  string
		entries       []events.Entry
		similar, also string
	}{
		{"the same key", "paypal", []events.Entry{scammer("paypaI")}, "scammers 0", ""},
		{"either key may match", "ilona", []events.Entry{scammer("ＩLÓNA")}, "scammers 0", ""},
		{"two code points", "ał", []events.Entry{scammer("al")}, "", ""},
		{"three code points", "ałe", []events.Entry{scammer("ale")}, "scammers 0", ""},
		{"three of a key, not of a name", "łm", []events.Entry{scammer("lm")}, "scammers 0", ""}, // m is rn
		{"a key of two code points beside one of three", "Mł", []events.Entry{accused("MI")}, "", ""},
		{"half of the name", "łoko", []events.Entry{scammer("lokoloko")}, "scammers 0", ""},
		{"less than half", "łoko", []events.Entry{scammer("lokolokol")}, "", ""},
		{"at the end", "łoko", []events.Entry{scammer("1234loko")}, "scammers 0", ""},
		{"longer than the name", "łokoloko", []events.Entry{scammer("loko")}, "", ""},
		{"risk list: equal", "łoko", []events.Entry{accused("loko")}, "scammers 0", ""},
		{"risk list: not equal", "łoko", []events.Entry{accused("loko1")}, "", ""},
		{"matches as it stands", "loko", []events.Entry{scammer("loko")}, "", "scammers 0"},
		{"matches by chat id", "paypal", []events.Entry{chat}, "", "scammers 0"},
		{"both at once", "paypal", []events.Entry{scammer("paypaI"), scammer("paypal")}, "scammers 0", "scammers 1"},
		{"groups", "paypal", []events.Entry{server, scammer("paypaI")}, "scammers 1 servers 0", ""},
		{"never of legit", "paypal", []events.Entry{legit}, "", ""},
		{"leaves legit in", "pаypal", []events.Entry{legit, scammer("paypal")}, "scammers 1", "legit 0"},
		{"equal, starts, contains, then newest", "łoko", []events.Entry{scammer("1loko"), scammer("loko1"), scammer("loko"),
			scammer("2loko"), scammer("loko2"), scammer("LOKO\u200b")}, "scammers 5 2 4 1 3 0", ""},
		{"ties by id", "paypal", []events.Entry{b, a}, "scammers b a", ""},
		{"digits are an id", "1230", []events.Entry{scammer("l230")}, "", ""},
		{"other digits too", "１２３٠", []events.Entry{scammer("l23.")}, "", ""},
		{"nothing to see", "\u200b\u200b\u200b", []events.Entry{scammer("\u200b")}, "", ""},
		{"marks only", "\u0301\u0302\u0303", []events.Entry{scammer("abc")}, "", ""},
	} {
		similar, results := similarIn(t, CheckQuery{Search: c.search}, c.entries...)
		if similar != c.similar || results != c.also {
			t.Errorf("%s: %q finds %q and beside it %q, want %q and %q", c.what, c.search, similar, results, c.similar, c.also)
		}
	}
	if similar, _ := similarIn(t, CheckQuery{ID: "9", Search: "paypal"}, scammer("paypaI")); similar != "" {
		t.Errorf("by id: %q", similar)
	}
}

// TestSimilarTwenty: at most 20 of a list, best first; who matches literally but is left out of the
// results' 20 is not similar either.
func TestSimilarTwenty(t *testing.T) {
	var entries []events.Entry
	for i := range 25 {
		entries = append(entries, scammer(fmt.Sprint("łoko", i%5)), scammer("lokо"), scammer("loko"))
	}
	similar, results := similarIn(t, CheckQuery{Search: "loko"}, entries...)
	want := "scammers"
	for i := range 20 {
		want += fmt.Sprint(" ", 73-3*i) // the Cyrillic ones, newest first
	}
	if similar != want || len(strings.Fields(results)) != 21 {
		t.Errorf("similar %q, want %q; results %q", similar, want, results)
	}
}

// TestSimilarVerified: who becomes verified is found by more than the whole key, and back.
func TestSimilarVerified(t *testing.T) {
	m, r := New(), NewRenderer()
	for i, want := range []string{"", "scammers e", "", "scammers e"} {
		e := accused("loko1")
		e.EntryID, e.ChatID, e.Verified = "e", "9", i%2 == 1
		v := m.Apply([]Record{r.Render(uint64(i+1), e)}, uint64(i+1))
		c, err := v.Check(context.Background(), CheckQuery{Search: "łoko"})
		if got := show(c.Similar); err != nil || got != want {
			t.Errorf("verified %v: %q %v, want %q", e.Verified, got, err, want)
		}
	}
}

// TestGramsFind: whatever has at least half of a key's code points and stands in it shares a gram
// with what is kept of it, so that no similar row is missed.
func TestGramsFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := []rune(rapid.StringOfN(rapid.SampledFrom([]rune("abcął😀")), minAlike, 70, -1).Draw(t, "key"))
		n := rapid.IntRange(windowOf(len(key)), len(key)).Draw(t, "n")
		at := rapid.IntRange(0, len(key)-n).Draw(t, "at")
		m, r := New(), NewRenderer()
		e := scammer(string(key))
		e.EntryID, e.ChatID = "e", "9"
		rec := r.Render(1, e)
		rec.row.alike = 0 // the keys as they are drawn
		rec.row.blob = rec.row.blob[:rec.row.textEnd] + string(key)
		rec.row.shapeEnd = uint32(len(rec.row.blob))
		rec.row.keysEnd = rec.row.shapeEnd
		m.Apply([]Record{rec}, 1)
		k := &likeness{}
		k.keys.Shape = string(key[at : at+n])
		if refs := m.View().likes.candidates(&k.keys); !slices.Equal(refs, []uint32{0}) {
			t.Fatalf("%q does not find %q: %v", k.keys.Shape, string(key), refs)
		}
	})
}

// TestLikesFollow: what the tree holds after changes, removals and a bulk load is what the rows say.
func TestLikesFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair()
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			p.batch(t)
		}
		got := likeItems(&p.model.likes.tree)
		p.model.BeginBulk()
		p.model.EndBulk()
		if want := likeItems(&p.model.likes.tree); !slices.Equal(got, want) {
			t.Fatalf("%d items, reloaded %d", len(got), len(want))
		}
		for _, it := range got {
			n := 0
			p.model.likes.tree.withKey(it.key, func(uint32) { n++ })
			if c := p.model.likes.tree.countKey(it.key); c != n {
				t.Fatalf("%d items of one key, counted %d", n, c)
			}
		}
	})
}

func likeItems(t *tree) (items []item) {
	var walk func(n *node)
	walk = func(n *node) {
		if n.kids == nil {
			items = append(items, n.items...)
		}
		for _, k := range n.kids {
			walk(k)
		}
	}
	if t.root != nil {
		walk(t.root)
	}
	return items
}

// TestSimilarStops: the reader has gone away.
func TestSimilarStops(t *testing.T) {
	v := named(someNames(100, 3))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var found [numLists][]*Row
	if err := v.checkAlike(ctx, newLikeness("paypal", "paypal"), &found); err != context.Canceled {
		t.Errorf("%v", err)
	}
}
