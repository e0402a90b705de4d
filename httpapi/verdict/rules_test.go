package verdict

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/readmodel/lookalike"
)

// someNames are few and alike, so that random entries and random texts meet. The last three are
// entries' alone: typed among others, they would be more than one part, or a label.
func someNames() []string {
	return []string{"maja", "Maja", "mаja", "m.aja", "maja 1997", "maja1997", "ryś", "rys", "nocny ryś", "nocny.ryś", "zenek", "𝗺𝗮𝗷𝗮", "klub", "ala, ola", "nick", "klub maja"}
}

func someIDs() []string { return []string{majaID, frogID, lynxID, nobodyID, otherID, "7"} }

func drawEntries(t *rapid.T) []Entry {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Entry {
		l := rapid.SampledFrom([]events.List{events.Scammers, events.Servers, events.Legit}).Draw(t, "list")
		return Entry{
			List: l, ID: rapid.StringMatching("[a-z]{6}").Draw(t, "id"), ChatID: rapid.SampledFrom(someIDs()).Draw(t, "chat"),
			Name: rapid.SampledFrom(someNames()).Draw(t, "name"), Verified: l == events.Legit || rapid.Bool().Draw(t, "verified"),
		}
	}), 0, 8).Draw(t, "entries")
}

// typed is a text as people type it: things, each an id or a name.
type typed struct{ things []string }

func drawTyped(t *rapid.T) typed {
	return typed{rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom(someNames()[:13]),
		rapid.SampledFrom(someIDs()[:5]),
		rapid.Map(rapid.SampledFrom(someIDs()[:5]), func(id string) string { return "<@" + id + ">" }),
	), 1, 5).Draw(t, "things")}
}

func (x typed) text() string { return strings.Join(x.things, ", ") }

func (x typed) ids() (ids []string) {
	for _, thing := range x.things {
		if id := strings.Trim(thing, "<@>"); paste.Digits(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (x typed) names() (names []string) {
	for _, thing := range x.things {
		if !paste.Digits(strings.Trim(thing, "<@>")) {
			names = append(names, thing)
		}
	}
	return names
}

func has(all []Entry, f func(Entry) bool) bool { return slices.ContainsFunc(all, f) }

func isAccused(e Entry) bool { return e.List != events.Legit }

// What the page may say of random people, whatever is typed. The rules are those of the package
// doc, said again without readings and nearness.
func TestRules(t *testing.T) {
	rd := reader(t)
	rapid.Check(t, func(t *rapid.T) {
		all, x := drawEntries(t), drawTyped(t)
		v := readAndDecide(t, rd, viewOf(all), x.text(), "")
		ids, names := x.ids(), x.names()
		accusedID := slices.ContainsFunc(ids, func(id string) bool { return has(all, func(e Entry) bool { return e.ChatID == id && isAccused(e) }) })
		trustedIDs := len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool {
			return !has(all, func(e Entry) bool { return e.ChatID == id && !isAccused(e) })
		})
		named := func(equal func(a, b string) bool, f func(Entry) bool) bool {
			return slices.ContainsFunc(names, func(n string) bool { return has(all, func(e Entry) bool { return equal(e.Name, n) && f(e) }) })
		}
		listedID := slices.ContainsFunc(ids, func(id string) bool { return has(all, func(e Entry) bool { return e.ChatID == id }) })
		red := v.Value == Accused || v.Value == Risk
		switch {
		case v.Value == Trusted && (!trustedIDs || accusedID):
			t.Fatalf("%q: green, with ids %v", x.text(), ids)
		case v.Value.FoundNobody() && (listedID || named(paste.Equal, func(Entry) bool { return true })):
			t.Fatalf("%q: grey (%d), and somebody is listed", x.text(), v.Reason)
		case red && !accusedID && !named(dressed, isAccused):
			t.Fatalf("%q: red, and nobody is accused", x.text())
		case red && v.Reason != ByID && len(ids) > 0:
			t.Fatalf("%q: red for a name beside an id", x.text())
		case accusedID && (v.Reason != ByID || !red):
			t.Fatalf("%q: %s although an id is an accused's", x.text(), v.Value)
		case v.Value == TrustedName && (len(ids) > 0 || named(paste.Equal, isAccused)):
			t.Fatalf("%q: %s", x.text(), v.Value)
		}
	})
}

// dressed reports whether two names are one but for the width of letters and what is around them.
func dressed(a, b string) bool {
	return paste.Equal(lookalike.Bare(lookalike.Visible(a)), lookalike.Bare(lookalike.Visible(b)))
}

// The order of what was typed, and of what was found, decides nothing.
func TestOrderDecidesNothing(t *testing.T) {
	rd := reader(t)
	rapid.Check(t, func(t *rapid.T) {
		all, x := drawEntries(t), drawTyped(t)
		all = slices.DeleteFunc(all, func(e Entry) bool { return e.Name == "klub maja" }) // is "klub, maja" and not "maja, klub"
		v := readAndDecide(t, rd, viewOf(all), x.text(), "")
		again := typed{rapid.Permutation(x.things).Draw(t, "things again")}
		w := readAndDecide(t, rd, viewOf(rapid.Permutation(all).Draw(t, "entries again")), again.text(), "")
		if v.Value != w.Value || v.Reason != w.Reason {
			t.Fatalf("%q: %s %d, and %q: %s %d", x.text(), v.Value, v.Reason, again.text(), w.Value, w.Reason)
		}
	})
}

// What is written around a text that warns does not make it clear anybody.
func TestNoiseClearsNobody(t *testing.T) {
	rd := reader(t)
	noise := []string{"!", "✅", "\u200b", " ", "#1234", "?", ".", " qqqq", " qq ww", ", qqqq", "\nqqqq", " https://example.org", " 12", " @qqqq", "*", ",https://example.org", "(https://discord.gg/x)", " https://discord.com/users/333333333333333333", ",discord.com/users/333333333333333333", "|discord.gg/abc"}
	rapid.Check(t, func(t *rapid.T) {
		all, x := drawEntries(t), drawTyped(t)
		view := viewOf(all)
		v := readAndDecide(t, rd, view, x.text(), "")
		if v.Value != Accused && v.Value != Risk && v.Value != Caution {
			return
		}
		before, after := rapid.SampledFrom(append(noise, "")).Draw(t, "before"), rapid.SliceOfN(rapid.SampledFrom(noise), 1, 3).Draw(t, "after")
		text := before + " " + x.text() + strings.Join(after, "")
		if w := readAndDecide(t, rd, view, text, ""); w.Value == None || w.Value == Trusted || w.Value == TrustedName {
			t.Fatalf("%q: %s, but %q: %s", x.text(), v.Value, text, w.Value)
		}
	})
}

// What TestNoiseClearsNobody found once in tens of thousands: a word of the language that looks like a
// trusted person's name, and an accused's name that is as near once what stands around it is gone.
func TestNoiseKeepsAWarning(t *testing.T) {
	legit := Entry{List: events.Legit, ID: "legit", ChatID: majaID, Verified: true}
	accused := Entry{List: events.Scammers, ID: "accused", ChatID: frogID}
	for _, c := range []struct{ trusted, accused, text, more string }{
		{"m.aja", "zenek", "m.aja, maja", "m.aja, maja qqqq"},
		{"𝗺𝗮𝗷𝗮", "maja", "maja, " + majaID, "! maja, " + majaID + "!"},
	} {
		legit.Name, accused.Name = c.trusted, c.accused
		view := viewOf([]Entry{legit, accused})
		for _, text := range []string{c.text, c.more} {
			if v := readAndDecide(t, reader(t), view, text, ""); v.Value != Caution {
				t.Errorf("%q: %s", text, v.Value)
			}
		}
	}
}

// A part of a name that was found is no name that was looked up.
func TestPartsOfAFoundNameDoNotCount(t *testing.T) {
	view := viewOf([]Entry{{List: events.Legit, ID: "a", ChatID: majaID, Name: "xX_ćwirek_Xx", Verified: true}})
	v := readAndDecide(t, reader(t), view, "xX_ćwirek_Xx", "")
	if len(v.Subjects) != 1 || v.Value != TrustedName {
		t.Errorf("%s: %+v", v.Value, v.Subjects)
	}
}

// A reading that was not typed never vouches, whatever was found for it, and nothing accuses where
// nobody is accused.
func TestOnlyTypedReadingsVouch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawEntries(t)
		var p paste.Paste
		var found Found
		for range rapid.IntRange(1, 4).Draw(t, "subjects") {
			s := paste.Sought{How: rapid.SampledFrom([]paste.How{paste.Maybe, paste.Word}).Draw(t, "how"), Spans: []paste.Span{{From: 0, To: 1}}}
			nearest := Same
			switch rapid.SampledFrom([]string{"id", "number", "run", "name"}).Draw(t, "what") {
			case "id":
				s.ID, s.How = rapid.SampledFrom(someIDs()).Draw(t, "digits"), paste.Maybe
			case "number":
				s.Number, s.How = "abcdef1", paste.Maybe
			case "run":
				s.Names = []string{rapid.SampledFrom(someNames()).Draw(t, "run")}
			case "name": // was typed, and is nobody's but for something
				s.Names, s.How, nearest = []string{rapid.SampledFrom(someNames()).Draw(t, "name")}, paste.Typed, Dressed
			}
			p.Sought = append(p.Sought, s)
			var hits []Hit
			for _, e := range all {
				hits = append(hits, Hit{e, rapid.SampledFrom([]Nearness{Same, Dressed, Alike}[nearest:]).Draw(t, "near"), "x"})
			}
			found.Hits = append(found.Hits, hits)
		}
		found.Complete = true
		v := Decide(&p, found)
		if v.Value == Trusted || v.Value == TrustedName {
			t.Fatalf("%+v: %s", p.Sought, v.Value)
		}
		if red := v.Value == Accused || v.Value == Risk; red && !has(all, isAccused) {
			t.Fatalf("%+v: %s, and nobody is accused", p.Sought, v.Value)
		}
	})
}
