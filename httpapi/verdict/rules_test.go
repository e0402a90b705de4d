package verdict

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
)

// someNames are few and alike, so that random entries and random texts meet.
func someNames() []string {
	return []string{"maja", "Maja", "mаja", "m.aja", "maja 1997", "maja1997", "ryś", "rys", "nocny ryś", "nocny.ryś", "zenek", "𝗺𝗮𝗷𝗮", "klub", "ala, ola", "ola", "nick"}
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

// typed is what somebody types: things, each an id or a name.
type typed struct{ things []string }

func drawTyped(t *rapid.T) typed {
	return typed{rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom(someNames()[:13]), // without the commas, which would make two of them
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
	rapid.Check(t, func(t *rapid.T) {
		all, x := drawEntries(t), drawTyped(t)
		v := readAndDecide(x.text(), all)
		ids, names := x.ids(), x.names()
		accusedID := slices.ContainsFunc(ids, func(id string) bool { return has(all, func(e Entry) bool { return e.ChatID == id && isAccused(e) }) })
		trustedIDs := len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool {
			return !has(all, func(e Entry) bool { return e.ChatID == id && !isAccused(e) })
		})
		named := func(f func(Entry) bool) bool {
			return slices.ContainsFunc(names, func(n string) bool { return has(all, func(e Entry) bool { return paste.Equal(e.Name, n) && f(e) }) })
		}
		listedID := slices.ContainsFunc(ids, func(id string) bool { return has(all, func(e Entry) bool { return e.ChatID == id }) })
		switch {
		case v.Value == Trusted && (!trustedIDs || accusedID):
			t.Fatalf("%q: green, with ids %v", x.text(), ids)
		case (v.Value == None || v.Value == Unchecked) && (listedID || named(func(Entry) bool { return true })):
			t.Fatalf("%q: grey (%d), and somebody is listed", x.text(), v.Reason)
		case (v.Value == Accused || v.Value == Risk) && !accusedID && !accusedByName(all, names):
			t.Fatalf("%q: red, and nobody is accused", x.text())
		case (v.Value == Accused || v.Value == Risk) && v.Reason != ByID && len(ids) > 0:
			t.Fatalf("%q: red for a name beside an id", x.text())
		case accusedID && (v.Reason != ByID || v.Value != Accused && v.Value != Risk):
			t.Fatalf("%q: %s although an id is an accused's", x.text(), v.Value)
		case v.Value == TrustedName && (len(ids) > 0 || named(isAccused)):
			t.Fatalf("%q: %s", x.text(), v.Value)
		}
	})
}

// accusedByName reports whether a name that was typed is an accused's but for the width of its
// letters.
func accusedByName(all []Entry, names []string) bool {
	return has(all, func(e Entry) bool {
		return isAccused(e) && slices.ContainsFunc(names, func(n string) bool {
			return nearName(paste.Name{Text: n}, &e) <= Dressed
		})
	})
}

// The order of what was typed, and of what was found, decides nothing.
func TestOrderDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, x := drawEntries(t), drawTyped(t)
		v := readAndDecide(x.text(), all)
		w := readAndDecide(typed{rapid.Permutation(x.things).Draw(t, "things again")}.text(), rapid.Permutation(all).Draw(t, "entries again"))
		if v.Value != w.Value || v.Reason != w.Reason {
			t.Fatalf("%q: %s %d, and in another order %s %d", x.text(), v.Value, v.Reason, w.Value, w.Reason)
		}
	})
}

// What is written around a text that warns does not make it clear anybody.
func TestNoiseClearsNobody(t *testing.T) {
	noise := []string{"!", "✅", "\u200b", " ", "#1234", "?", ".", " qqqq", " qq ww", ", qqqq", "\nqqqq", " https://example.org", " 12", " @qqqq", "*", ",https://example.org", "(https://discord.gg/x)", " https://discord.com/users/333333333333333333", ",discord.com/users/333333333333333333", "|discord.gg/abc"}
	rapid.Check(t, func(t *rapid.T) {
		all, x := drawEntries(t), drawTyped(t)
		v := readAndDecide(x.text(), all)
		if v.Value != Accused && v.Value != Risk && v.Value != Caution {
			return
		}
		before, after := rapid.SampledFrom(append(noise, "")).Draw(t, "before"), rapid.SliceOfN(rapid.SampledFrom(noise), 1, 3).Draw(t, "after")
		text := before + " " + x.text() + strings.Join(after, "")
		if w := readAndDecide(text, all); w.Value == None || w.Value == Trusted || w.Value == TrustedName {
			t.Fatalf("%q: %s, but %q: %s", x.text(), v.Value, text, w.Value)
		}
	})
}

// A reading that was not typed never vouches.
func TestOnlyTypedVouches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawEntries(t)
		var p paste.Paste
		for range rapid.IntRange(1, 4).Draw(t, "subjects") {
			s := paste.Subject{Within: -1, How: rapid.SampledFrom([]paste.How{paste.Named, paste.Guessed}).Draw(t, "how")}
			if rapid.Bool().Draw(t, "id") {
				s.ID, s.How = rapid.SampledFrom(someIDs()).Draw(t, "digits"), paste.Guessed
			} else {
				s.Names = []paste.Name{{Text: rapid.SampledFrom(someNames()).Draw(t, "name"), Cleaned: true}}
				s.How = rapid.SampledFrom([]paste.How{paste.Typed, paste.Named, paste.Guessed}).Draw(t, "how else")
			}
			p.Subjects = append(p.Subjects, s)
		}
		found := make([][]Entry, len(p.Subjects))
		for i := range found {
			found[i] = all
		}
		if v := Decide(p, found); v.Value == Trusted || v.Value == TrustedName {
			t.Fatalf("%+v: %s", p.Subjects, v.Value)
		}
	})
}
