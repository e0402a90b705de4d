package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/terms"
)

// people are the entries of the demonstration, and a person check over them.
type people struct {
	view                        *readmodel.View
	reader                      *paste.Reader
	accused, unambiguous, loyal []events.Entry // accused, verified; those whose name nobody else has; trusted
}

func newPeople(t testing.TB) *people {
	t.Helper()
	all, err := Events(time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC))
	require.NoError(t, err)
	words, err := terms.New()
	require.NoError(t, err)
	renderer, model := readmodel.NewRenderer(), readmodel.New()
	var records []readmodel.Record
	for i, e := range all {
		records = append(records, renderer.Render(uint64(i+1), e.Data))
	}
	p := &people{view: model.Apply(records, uint64(len(records))), reader: paste.NewReader(paste.Config{IsWord: words.Knows})}
	last := map[string]events.Entry{}
	var order []string
	for _, e := range all {
		if entry, ok := e.Data.(events.Entry); ok {
			if _, known := last[entry.EntryID]; !known {
				order = append(order, entry.EntryID)
			}
			last[entry.EntryID] = entry
		}
	}
	bearers, ids := map[string]int{}, map[string]bool{}
	for _, id := range order {
		if e := last[id]; p.view.Entry(e.List, id) != nil {
			bearers[strings.ToLower(e.Name)]++
			ids[e.ChatID] = ids[e.ChatID] || e.List != events.Legit
		}
	}
	for _, id := range order {
		e := last[id]
		switch {
		case p.view.Entry(e.List, id) == nil:
		case e.List == events.Legit:
			if bearers[strings.ToLower(e.Name)] == 1 && !ids[e.ChatID] {
				p.loyal = append(p.loyal, e)
			}
		case e.Verified:
			p.accused = append(p.accused, e)
			if bearers[strings.ToLower(e.Name)] == 1 {
				p.unambiguous = append(p.unambiguous, e)
			}
		}
	}
	return p
}

func (p *people) check(t rapid.TB, text, id string) verdict.Value {
	read := p.reader.Read(text, id)
	found, err := verdict.Find(context.Background(), p.view, &read)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return verdict.Decide(&read, found).Value
}

// class is a kind of paste, and the verdicts that are right for it.
type class struct {
	name  string
	right []verdict.Value
	make  func(d *draw) string // of the field for an id, what follows a form feed
}

// draw holds the people that a paste is about.
type draw struct {
	rng                    *rand.Rand
	scam, other            events.Entry // accused: anybody, and one whose name is their own
	pair, server           events.Entry // accused, with a name of two words, and a server of several
	loyal                  events.Entry
	unlisted, halves, half string // ids; halves are two groups of nine
}

func (p *people) draw(rng *rand.Rand) *draw {
	id := fmt.Sprintf("7%08d", rng.Int64N(1e8))
	d := &draw{rng: rng, scam: pick(rng, p.accused), other: pick(rng, p.unambiguous), loyal: pick(rng, p.loyal), half: fmt.Sprintf("7%08d", rng.Int64N(1e8))}
	d.unlisted, d.halves = id+d.half, id+" "+d.half
	few := func(from []events.Entry, f func(events.Entry) bool) events.Entry {
		for {
			if e := pick(rng, from); f(e) {
				return e
			}
		}
	}
	d.pair = few(p.unambiguous, func(e events.Entry) bool { return e.List == events.Scammers && strings.Contains(e.Name, " ") })
	d.server = few(p.accused, func(e events.Entry) bool { return e.List == events.Servers })
	return d
}

// classes are kinds of pastes that reviewers found wrong answers to, and others like them.
func classes() []class {
	warns := []verdict.Value{verdict.Accused, verdict.Risk, verdict.Caution}
	careful, red := []verdict.Value{verdict.Caution}, []verdict.Value{verdict.Accused}
	grey := []verdict.Value{verdict.Unchecked}
	green := []verdict.Value{verdict.Trusted}
	pasted := func(name string, right []verdict.Value, make func(d *draw) string) class {
		return class{name, right, make}
	}
	return []class{
		pasted("G1 an id in a foreign address", careful, func(d *draw) string { return "https://discordapp.pl/users/" + d.unlisted + " " + d.loyal.ChatID }),
		pasted("G2 dots in an address", careful, func(d *draw) string {
			return "https://discord.com/users/" + d.loyal.ChatID + pick(d.rng, []string{"/../", "/%2e%2e/", "\\..\\", "/./../"}) + d.unlisted
		}),
		pasted("G3 an id that touches letters", careful, func(d *draw) string {
			return d.loyal.ChatID + " " + pick(d.rng, []string{"profil", "user", "konto", "dc", "x"}) + d.unlisted
		}),
		pasted("G4 an id in halves", careful, func(d *draw) string { return d.loyal.ChatID + " " + d.halves }),
		pasted("G5 a name of several words", careful, func(d *draw) string { return d.server.Name + " i " + d.loyal.ChatID }),
		pasted("G6 a sentence with a name", careful, func(d *draw) string {
			return "Czy " + d.pair.Name + " to ten sam co <@" + d.loyal.ChatID + ">?"
		}),
		pasted("G7 names and an id in any order", careful, func(d *draw) string {
			parts := []string{d.server.Name, d.pair.Name, d.loyal.ChatID, d.other.Name}
			d.rng.Shuffle(4, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			return strings.Join(parts, " i ")
		}),
		pasted("G8 a telephone, account or profile", careful, func(d *draw) string {
			return d.loyal.ChatID + " " + pick(d.rng, []string{"600700800", "+48 600 700 800", "PL61109010140000071219812874", "steamcommunity.com/id/ktos", "ja@example.org", "<t:1700000000:R>"})
		}),
		pasted("G8 digits of another script", careful, func(d *draw) string { return d.loyal.ChatID + " " + inArabic(d.unlisted) }),
		pasted("N1 a nick in the field for an id", warns, func(d *draw) string { return pick(d.rng, []string{"", "zupelnienikt"}) + "\f" + d.other.Name }),
		pasted("N2 an id in halves", red, func(d *draw) string { return d.scam.ChatID[:10] + " " + d.scam.ChatID[10:] }),
		pasted("N3 a name beside an id on no list", careful, func(d *draw) string {
			return "Czy " + d.pair.Name + " to ten sam co <@" + d.unlisted + ">?"
		}),
		pasted("N4 a name in a sentence", warns, func(d *draw) string {
			return fmt.Sprintf(pick(d.rng, []string{"oszukał mnie %s na 200 zł", "wczoraj oszukał mnie „%s” na 200 zł", "oszukał mnie @%s na 200 zł i zablokował"}), d.pair.Name)
		}),
		pasted("N5 a copied header", warns, func(d *draw) string {
			return fmt.Sprintf(pick(d.rng, []string{"%s — Yesterday at 9:37 PM", "%s — wczoraj o 21:37\nsiema, masz chwilę?", "[21:37] %s: siema", "%s — 20.11.2026 21:37"}), d.other.Name)
		}),
		pasted("N6 a header beside an id on no list", careful, func(d *draw) string {
			return d.unlisted + " " + d.pair.Name + " (oszust) — wczoraj o 21:37"
		}),
		pasted("N7 a server and a telephone", warns, func(d *draw) string { return "600700800 " + d.server.Name }),
		pasted("N10 decoration", warns, func(d *draw) string {
			return fmt.Sprintf(pick(d.rng, []string{"❤️ %s ❤️", "%s #0", "~%s~", "♛%s♛"}), d.other.Name)
		}),
		pasted("N11 mailto", grey, func(*draw) string { return "mailto:jan@example.com" }),
		pasted("N12 an id in other forms", warns, func(d *draw) string {
			id := d.scam.ChatID
			return pick(d.rng, []string{inArabic(id), "(" + id[:4] + ") " + id[4:], id[:10] + "\n" + id[10:], id[:4] + "/" + id[4:8] + "/" + id[8:], "%3C%40" + id + "%3E", strings.Replace(id, "0", "O", 2)})
		}),
		pasted("N13 the registry's own links and numbers", warns, func(d *draw) string {
			return pick(d.rng, []string{"http://127.0.0.1:8080/wpis/" + string(d.scam.List) + "/" + d.scam.EntryID, d.scam.EntryID, "zgłoszenie " + d.scam.ReportID, "http://localhost/?search=" + d.scam.ChatID})
		}),
		pasted("roles, times, commands", grey, func(d *draw) string {
			return fmt.Sprintf(pick(d.rng, []string{"<@&%s>", "</x:%s>", "<#%s>", "https://discord.com/channels/@me/%s"}), pick(d.rng, []string{d.loyal.ChatID, d.scam.ChatID}))
		}),
		pasted("a number before a grouped id", red, func(d *draw) string {
			id := d.scam.ChatID
			return pick(d.rng, []string{"1. ", "nr 2, ", ""}) + id[:4] + " " + id[4:8] + " " + id[8:12] + " " + id[12:16] + " " + id[16:] + pick(d.rng, []string{", 50 zł", ", 12:30", ""})
		}),
		pasted("a trusted person", green, func(d *draw) string {
			return fmt.Sprintf(pick(d.rng, []string{"%s", "<@%s>", "https://discord.com/users/%s", "ID: %s", d.loyal.Name + " %s", "%s — wczoraj o 21:37", "czy %s jest ok?"}), d.loyal.ChatID)
		}),
	}
}

func inArabic(digits string) string {
	return strings.Map(func(r rune) rune { return r - '0' + '٠' }, digits)
}

// Every kind of paste gets a right answer, whatever it names.
func TestVerdictsByClass(t *testing.T) {
	p := newPeople(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range classes() {
		wrong := 0
		for range 60 {
			d := p.draw(rng)
			text, id, _ := strings.Cut(c.make(d), "\f")
			if v := p.check(t, text, id); !slices.Contains(c.right, v) {
				if wrong++; wrong < 4 {
					t.Errorf("%s: %q beside %q: %s, want %v", c.name, text, id, v, c.right)
				}
			}
		}
	}
}

// texts draws what people add to a text.
func texts(p *people) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		one := rapid.OneOf(
			rapid.SampledFrom([]string{"oszust", "to ten", "600 700 800", "https://example.org/x", "😀", "— wczoraj o 21:37", "nick:", "@ktoś", "<@&1>", "i", "\n", "\u200b", "czy", "…", "50 zł", "[21:37]", "#1234", "712345678912345678", "x712345678912345678"}),
			rapid.Map(rapid.SampledFrom(p.accused), func(e events.Entry) string { return e.Name }),
			rapid.Map(rapid.SampledFrom(p.loyal), func(e events.Entry) string { return e.Name }),
			rapid.StringN(0, 12, 40),
		)
		return strings.Join(rapid.SliceOfN(one, 0, 4).Draw(t, "parts"), rapid.SampledFrom([]string{" ", ", ", "\n"}).Draw(t, "joined"))
	})
}

func isWarning(v verdict.Value) bool {
	return v == verdict.Accused || v == verdict.Risk || v == verdict.Caution
}

// Adding a text never turns a warning into an all-clear, wherever it is added.
func TestMoreTextNeverClears(t *testing.T) {
	p := newPeople(t)
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(p.accused).Draw(t, "accused")
		warning := rapid.SampledFrom([]string{e.Name, e.ChatID, "oszukał mnie " + e.Name, e.ChatID[:10] + " " + e.ChatID[10:], "x" + e.ChatID}).Draw(t, "warning")
		if more := rapid.SampledFrom(p.loyal).Draw(t, "trusted"); rapid.Bool().Draw(t, "beside a trusted id") {
			warning += " " + more.ChatID
		}
		if v := p.check(t, warning, ""); !isWarning(v) {
			t.Fatalf("%q: %s", warning, v)
		}
		text := texts(p).Draw(t, "before") + " " + warning + " " + texts(p).Draw(t, "after")
		if v := p.check(t, text, ""); !isWarning(v) && v != verdict.Unchecked {
			t.Fatalf("%q warns, and %q: %s", warning, text, v)
		}
	})
}

// Green is for a text in which nothing is left but for a trusted person's id, their name, and words
// that are nobody's name.
func TestTrustedExplainsTheWhole(t *testing.T) {
	p := newPeople(t)
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(p.loyal).Draw(t, "trusted")
		text := texts(p).Draw(t, "before") + " " + e.ChatID + " " + texts(p).Draw(t, "after")
		if p.check(t, text, "") != verdict.Trusted {
			return
		}
		rest := strings.ReplaceAll(strings.ReplaceAll(text, e.ChatID, "\n"), e.Name, "\n")
		if v := p.check(t, rest, ""); strings.TrimSpace(rest) != "" && v != verdict.None && v != verdict.Unchecked {
			t.Fatalf("%q is trusted, and what is left, %q, is %s", text, rest, v)
		}
		read := p.reader.Read("to "+rest, "")                                                 // a tag that is the whole text would be a channel
		if kind := read.Kind(func(paste.Stretch) bool { return true }); kind > paste.Figure { // a remnant and a figure mean nothing next to words
			t.Fatalf("%q is trusted, and has the kind %d", text, kind)
		}
	})
}

// The order of the parts decides nothing.
func TestOrderDecidesNothing(t *testing.T) {
	p := newPeople(t)
	rapid.Check(t, func(t *rapid.T) {
		parts := []string{"nikt taki", "600700800"}
		for _, e := range rapid.SliceOfN(rapid.SampledFrom(append(slices.Clone(p.accused), p.loyal...)), 1, 4).Draw(t, "people") {
			parts = append(parts, rapid.SampledFrom([]string{e.Name, "<@" + e.ChatID + ">", "„" + e.Name + "”"}).Draw(t, "as"))
		}
		join := rapid.SampledFrom([]string{", ", "\n", " ; "}).Draw(t, "joined")
		text, other := strings.Join(parts, join), strings.Join(rapid.Permutation(parts).Draw(t, "order"), join)
		if v, w := p.check(t, text, ""), p.check(t, other, ""); v != w {
			t.Fatalf("%q: %s, and %q: %s", text, v, other, w)
		}
	})
}

// BenchmarkHostileTexts is the cost of texts made to be dear: reading, look-ups and decision.
func BenchmarkHostileTexts(b *testing.B) {
	p := newPeople(b)
	distinct := func(separator string, of func(i int) string) string {
		var all []string
		for i := range 300 {
			all = append(all, of(i))
		}
		return string([]rune(strings.Join(all, separator))[:300])
	}
	letter := func(i int) string { return string(rune('a'+i*i%23)) + string(rune('ą'+i%7)) }
	for name, text := range map[string]string{
		"sentence":     "Czy Leśny Kosmita to ten sam co <@" + p.loyal[0].ChatID + ">?",
		"words":        distinct(" ", func(i int) string { return letter(i)[:1] }),
		"marked":       distinct(" ", letter),
		"dots":         distinct(".", func(i int) string { return letter(i)[:1] }),
		"digits":       distinct(" ", func(i int) string { return fmt.Sprint(i * i % 10) }),
		"parts":        distinct(",", letter),
		"slashes":      distinct("/", letter),
		"quotes":       distinct("„", letter),
		"addresses":    distinct(" ", func(i int) string { return letter(i)[:1] + ".pl/" }),
		"ligatures":    strings.Repeat("ﷺa,", 100),
		"mathematical": distinct(" ", func(i int) string { return string(rune(0x1d41a + i%26)) }),
		"small capitals": distinct(" ", func(i int) string {
			return string([]rune("ᴀʙᴅᴇꜰɢʜᴊĸʟʍɴᴘꞯʀᴛ")[i%16]) + string(rune('a'+i*i%19))
		}),
		"mentions":     distinct("", func(i int) string { return fmt.Sprintf("<@%d>", i) }),
		"entities":     strings.Repeat("&#97; ", 50),
		"marks":        "a" + strings.Repeat("\u0301\u0328", 149),
		"names":        distinct(" ", func(i int) string { return p.accused[i].Name }),
		"common names": distinct(" ", func(i int) string { return strings.ToLower(p.accused[i%40].Name) }),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				read := p.reader.Read(text, "")
				found, err := verdict.Find(context.Background(), p.view, &read)
				require.NoError(b, err)
				verdict.Decide(&read, found)
			}
		})
	}
}
