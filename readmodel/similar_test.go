package readmodel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// similarIn is who of entries, whose ids and times are their places unless they have some, is
// similar to the search: "scammers 1 0".
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
	require.NoError(t, err)
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
	return events.Entry{Revision: 1, List: events.Scammers, Name: name, Verified: true}
}

func accused(name string) events.Entry {
	return events.Entry{Revision: 1, List: events.Scammers, Name: name}
}

// A name is found as chat programs write it, where nobody has the text as it is.
func TestHandles(t *testing.T) {
	entries := []events.Entry{scammer("kaps"), scammer("@both"), scammer("room#12")}
	for search, want := range map[string]string{
		"@kaps": "scammers 0", "kaps#0": "scammers 0", "@Kaps#1234": "scammers 0", "@ kaps #7": "scammers 0",
		"@both": "scammers 1", "room#1": "scammers 2", "@room#12": "scammers 2", "@": "scammers 1",
		"@@kaps": "", "kaps#12345": "", "kaps#": "", "kaps#x": "", "#0": "",
	} {
		if _, results := similarIn(t, CheckQuery{Search: search}, entries...); results != want {
			t.Errorf("%q finds %q, want %q", search, results, want)
		}
	}
	if similar, results := similarIn(t, CheckQuery{Search: "@kарs#0"}, entries...); similar != "scammers 0" || results != "" {
		t.Errorf("a look-alike: similar %q, results %q", similar, results)
	}
}

// TestSimilar is the rule of httpapi/CONTRACT.md#similar, clause by clause.
func TestSimilar(t *testing.T) {
	server := events.Entry{Revision: 1, List: events.Servers, Name: "paypaI", Verified: true}
	legit := events.Entry{Revision: 1, List: events.Legit, Name: "pаypal", Verified: true}
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

// TestImitates is the rule of httpapi/CONTRACT.md#imitates, clause by clause.
func TestImitates(t *testing.T) {
	trusted := func(name string) events.Entry {
		return events.Entry{Revision: 1, List: events.Legit, Name: name, Verified: true}
	}
	waiting := events.Entry{Revision: 1, List: events.Legit, Name: "maja1997"}
	many := make([]events.Entry, 25)
	for i := range many {
		many[i] = trusted("maja1997")
	}
	for _, c := range []struct {
		what, search string
		entries      []events.Entry
		want         string
	}{
		{"a letter of another script", "mаja1997", []events.Entry{trusted("maja1997")}, "0"},
		{"marks dropped", "Kwasny Joystick", []events.Entry{trusted("Kwaśny Joystick")}, "0"},
		{"marks added", "Kwaśny Joystick", []events.Entry{trusted("Kwasny Joystick")}, "0"},
		{"invisible characters", "maja\u200b1997", []events.Entry{trusted("maja1997")}, "0"},
		{"the name itself", "MAJA1997", []events.Entry{trusted("maja1997")}, ""},
		{"part of the name", "mаja", []events.Entry{trusted("maja1997")}, ""},
		{"more than the name", "mаja1997x", []events.Entry{trusted("maja1997")}, ""},
		{"not verified", "mаja1997", []events.Entry{waiting}, ""},
		{"beside the name itself", "maja1997", []events.Entry{trusted("maja1997"), trusted("mаja1997")}, "1"},
		{"of two letters", "ał", []events.Entry{trusted("al")}, "0"},
		{"digits", "1230", []events.Entry{trusted("l230")}, ""},
		{"nothing to see", "\u200b", []events.Entry{trusted("\u200c")}, ""},
		{"accused", "mаja1997", []events.Entry{scammer("maja1997")}, ""},
		{"twenty, the newest first", "mаja1997", many, "24 23 22 21 20 19 18 17 16 15 14 13 12 11 10 9 8 7 6 5"},
	} {
		m, r := New(), NewRenderer()
		for i, e := range c.entries {
			e.EntryID, e.ChatID, e.ReportedAt = fmt.Sprint(i), "9", time.Unix(int64(i), 0)
			m.Apply([]Record{r.Render(uint64(i+1), e)}, uint64(i+1))
		}
		found, err := m.View().Check(context.Background(), CheckQuery{Search: c.search})
		require.NoError(t, err)
		var ids []string
		for _, r := range found.Imitates {
			ids = append(ids, r.ID())
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%s: %q imitates %q, want %q", c.what, c.search, got, c.want)
		}
		if json := checkJSON(found); strings.Contains(json, `,"imitates":[{"_id":"`) != (c.want != "") {
			t.Errorf("%s: imitates is in the JSON: %s", c.what, json)
		}
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

// disguise is one of the ways in which people write a name so that it reads the same.
type disguise struct {
	what string
	of   func(name string) string // the name itself where the disguise has nothing to work on
}

func disguises() []disguise {
	return []disguise{
		{"Cyrillic", letters("aAcCeEoOpPxXyYiIjJsSdhHBKMTlwq", "аАсСеЕоОрРхХуУіІјЈѕЅԁһНВКМТӀԝԛ")},
		{"Greek", letters("aAoOvpPuyiIBEZHKMNTXY", "αΑοΟνρΡυγιΙΒΕΖΗΚΜΝΤΧΥ")},
		{"full-width", shifted('!', '~', 0xFEE0)},
		{"mathematical", mathematical},
		{"digits for letters", letters("oOlI", "0011")},
		{"capital I for l", letters("l", "I")},
		{"zero-width", between("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\ufe0f")},
		{"combining marks", between("\u0301", "\u0336", "\u0308", "\u0323", "\u20dd", "\u0489")},
		{"strokes", letters("lLłŁoOdDhHtT", "łŁlLøØđĐħĦŧŦ")},
		{"ligatures", strings.NewReplacer("ffi", "ﬃ", "ff", "ﬀ", "fi", "ﬁ", "fl", "ﬂ", "st", "ﬆ", "aa", "ꜳ", "oo", "ꝏ",
			"ae", "æ", "oe", "œ", "nj", "ǌ", "lj", "ǉ", "dz", "ǳ", "ij", "ĳ", "ll", "ǁ", "rn", "m", "ss", "ß", "tz", "ꜩ").Replace},
		{"soft hyphens", between("\u00ad")},
		{"bidi controls", between("\u202e", "\u202c", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c")},
	}
}

func letters(from, to string) func(string) string {
	a, b := []rune(from), []rune(to)
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			if i := slices.Index(a, r); i >= 0 {
				return b[i]
			}
			return r
		}, s)
	}
}

func shifted(first, last, by rune) func(string) string {
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			if first <= r && r <= last {
				return r + by
			}
			return r
		}, s)
	}
}

// mathematical writes the letters in bold, italic, script and so on, in turn: Unicode has 13 such
// alphabets one after the other, and writes the letters it had before in their old places.
func mathematical(s string) string {
	i := rune(0)
	return strings.Map(func(r rune) rune {
		i++
		base := 0x1D400 + 52*(i%13)
		switch alphabet := i % 13; {
		case alphabet == 1 || alphabet == 3 || alphabet == 5 || alphabet == 6:
			return r // has gaps
		case 'A' <= r && r <= 'Z' && alphabet != 7:
			return base + r - 'A'
		case 'a' <= r && r <= 'z':
			return base + 26 + r - 'a'
		}
		return r
	}, s)
}

// between puts one of marks, in turn, after every letter.
func between(marks ...string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i, r := range []rune(s) {
			b.WriteString(string(r) + marks[i%len(marks)])
		}
		return b.String()
	}
}

// someNames are n different names as people have them in chats.
func someNames(n int, seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(words string) string { f := strings.Fields(words); return f[r.IntN(len(f))] }
	const first = `Adam Łukasz Michał Paweł Żaneta Wojciech Stanisław Ilona Igor Olaf Leszek Halina Zofia Jacek Kacper Piotr
		Oliwia Emilia Krzysztof Małgorzata Kamil Filip Raffaele Aaron Anna Joanna Natalia Dorota Patryk Szymon Iwo Lidia`
	const last = `Kowalski Nowak Wiśniewska Wójcik Zając Król Wróbel Dąbrowski Lewandowski Stępień Mazur Kaczmarek Ostrowska
		Pawlak Adamczyk Dudek Zieliński Wilk Lis Sikora Bąk Głowacki Kołodziej Offman Russell`
	const nick = `shadow trader admin paypal official skin nitro dragon wolf killer pixel coffee moon bllood gold silver turbo
		ninja master king lord support helper market seller fluffy allegro loot steam offer giveaway hall`
	seen, out := map[string]bool{}, []string(nil)
	for len(out) < n {
		var s string
		switch r.IntN(5) {
		case 0:
			s = pick(first) + " " + pick(last)
		case 1:
			s = pick(nick) + pick("_ . - x") + pick(nick) + fmt.Sprint(r.IntN(100))
		case 2:
			s = strings.ToUpper(pick(nick)) + pick(first)
		case 3:
			s = pick(first) + fmt.Sprint(r.IntN(2000))
			if r.IntN(2) == 0 {
				s = strings.ToLower(s)
			}
		default:
			s = strings.ToLower(pick(first)) + pick(nick) + fmt.Sprint(r.IntN(3000))
		}
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// named is a view of scammers with those names, every other one of the risk list.
func named(names []string) *View {
	m, r := New(), NewRenderer()
	defer m.Close()
	m.indexer.limit = 0
	m.BeginBulk()
	for i, name := range names {
		e := events.Entry{Revision: 1, List: events.Scammers, EntryID: fmt.Sprint(i), ChatID: fmt.Sprint("9", i), Name: name,
			Verified: i%2 == 0, ReportedAt: time.Unix(int64(i), 0)}
		m.Apply([]Record{r.Render(uint64(i+1), e)}, uint64(i+1))
	}
	m.EndBulk()
	m.indexer.tasks.Wait()
	return m.View()
}

// TestDisguises guards the contract's similar: of 1,000 names, an entry that is searched for under a
// disguise is found, and one that is listed under a disguise is found by its name.
func TestDisguises(t *testing.T) {
	t.Parallel()
	names := 1000
	if eventstest.RaceDetector {
		names = 100
	}
	for _, d := range disguises() {
		t.Run(d.what, func(t *testing.T) {
			var clean, disguised []string
			for _, name := range someNames(4*names, 1) {
				if other := d.of(name); other != name && len(clean) < names {
					clean, disguised = append(clean, name), append(disguised, other)
				}
			}
			if len(clean) < names {
				t.Fatalf("only %d names", len(clean))
			}
			missing(t, clean, disguised)
			missing(t, disguised, clean)
		})
	}
}

// missing reports the names of the registry that are not found by the searches.
func missing(t *testing.T, registry, searches []string) {
	t.Helper()
	v, failed := named(registry), 0
	for i, search := range searches {
		if slices.Contains(similarIDs(t, v, search), fmt.Sprint(i)) {
			continue
		}
		c, err := v.Check(context.Background(), CheckQuery{Search: search}) // NFKC may be all it takes
		require.NoError(t, err)
		if !slices.Contains(strings.Fields(show(c.Groups)), fmt.Sprint(i)) {
			if failed++; failed <= 5 {
				t.Errorf("%+q is not found by %+q", registry[i], search)
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d are not found", failed, len(registry))
	}
}

// similarIDs are the scammers that the search is told are similar.
func similarIDs(t testing.TB, v *View, search string) (ids []string) {
	found, err := v.checkText(context.Background(), search)
	require.NoError(t, err)
	for _, g := range found.Similar {
		for _, r := range g.Rows {
			ids = append(ids, r.ID())
		}
	}
	return ids
}

// wronglySimilar is how many of n clean names, asked for in a registry of n others, are told of
// somebody similar.
func wronglySimilar(t testing.TB, n int) (count int) {
	all := someNames(2*n, 2)
	v := named(all[:n])
	for _, search := range all[n:] {
		if ids := similarIDs(t, v, search); len(ids) > 0 {
			t.Logf("%s: %v", search, ids)
			count++
		}
	}
	return count
}

// TestCleanNames: the rule points at hardly anybody by mistake.
func TestCleanNames(t *testing.T) {
	if n := wronglySimilar(t, 4000); n != 2 {
		t.Errorf("%d of 4000 clean names are called similar, were 2: measure anew and write the number into lookalike/doc.go", n)
	}
}

// BenchmarkCleanNames measures the number in lookalike/doc.go.
func BenchmarkCleanNames(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(float64(wronglySimilar(b, 20_000)), "similar/20000")
	}
}
