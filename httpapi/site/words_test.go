package site

import (
	"fmt"
	"strings"
	"testing"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{
		0: "0 wpisów", 1: "1 wpis", 2: "2 wpisy", 4: "4 wpisy", 5: "5 wpisów", 11: "11 wpisów", 12: "12 wpisów", 14: "14 wpisów",
		21: "21 wpisów", 22: "22 wpisy", 25: "25 wpisów", 101: "101 wpisów", 112: "112 wpisów", 122: "122 wpisy", 1480: "1480 wpisów",
		12345: "12 345 wpisów", 1000002: "1 000 002 wpisy",
	} {
		if got := strings.ReplaceAll(entries().count(n), "\u00a0", " "); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// The reason why a name is similar names the difference that is there.
func TestWhy(t *testing.T) {
	for _, c := range []struct{ name, search, want string }{
		{"Zenon Łotr", "zenon lotr", "Podobna, bo „ł” to nie „l”."},
		{"аdmin", "admin", "Podobna, bo litera cyrylicy „а” wygląda jak „a”."},
		{"admin", "аdmin", "Podobna, bo litera cyrylicy „а” wygląda jak „a”."},
		{"paypal", "paypaI", "Podobna, bo znak „I” wygląda jak „l”."},
		{"zen0n", "zenon", "Podobna, bo cyfra „0” wygląda jak „o”."},
		{"ad\u200bmin", "admin", "Podobna, bo są w niej lub w pytaniu niewidoczne znaki."},
		{"modern", "modem", "Podobna, bo wygląda prawie tak samo."},
	} {
		if got := why(c.name, c.search); got != c.want {
			t.Errorf("%q for %q: %q, want %q", c.name, c.search, got, c.want)
		}
	}
}

// The gravest exact match decides what is said first; a name that only contains the text, or looks like it, does not.
func TestVerdict(t *testing.T) {
	none := events.Proofs{}
	w := newWorld(t, full(),
		person(events.Scammers, "a", "1", "Adam", "", false, none, 1),
		person(events.Scammers, "b", "2", "adam", "", true, none, 1),
		person(events.Servers, "c", "3", "Klub", "", false, none, 1),
		person(events.Servers, "d", "4", "Sklep", "", true, none, 1),
		person(events.Legit, "e", "5", "Ewa", "", true, none, 1),
		person(events.Scammers, "f", "6", "Basia Okrutna", "", true, none, 1),
		person(events.Scammers, "g", "5", "Ktoś", "", false, none, 1),
	)
	for search, want := range map[string]string{
		"ADAM": "Uwaga: jest na liście oszustów", "klub": "Ostrożnie: jest na liście ryzyka (serwer)", "Sklep": "Uwaga: jest na liście serwerów oszustów",
		"ewa": "Jest na liście zaufanych", "basia": "Nie ma dokładnie takiej nazwy", "nikt": "Nikogo nie znaleziono", "Ad\u200bam": "Nikogo nie znaleziono",
		"5": "Ostrożnie: jest na liście ryzyka",
	} {
		page := w.check(t, readmodel.CheckQuery{Search: search})
		var got string
		for _, n := range elements(t, page, "section") {
			if strings.HasPrefix(attr(n, "class"), "verdict") {
				got = seenIn(n)
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", search, got, want)
		}
	}
}

// The answer says no more than what was asked and found.
func TestVerdictText(t *testing.T) {
	none := events.Proofs{}
	all := []events.Data{
		person(events.Legit, "e", "5", "Ewa Zaufana", "", true, none, 1),
		person(events.Scammers, "f", "6", "Ewa Zaufаna", "", true, none, 1), // with a Cyrillic а
		person(events.Scammers, "g", "777", "Olek", "", true, none, 1),
	}
	for i := range maxGroup + 1 {
		all = append(all, person(events.Servers, fmt.Sprint("h", i), fmt.Sprint(1000+i), "Klub", "", false, none, i),
			person(events.Servers, fmt.Sprint("i", i), "99", fmt.Sprint("Klub ", i), "", false, none, i))
	}
	w := newWorld(t, full(), all...)
	for _, c := range []struct {
		query         readmodel.CheckQuery
		says, saysNot string
	}{
		{readmodel.CheckQuery{Search: "ewa zaufana"}, "Zgłoszono też kogoś o podobnej nazwie", "jednak"},
		{readmodel.CheckQuery{ID: "5"}, "zaufanych", "podobnej"},
		{readmodel.CheckQuery{Search: "klub"}, "Pasuje co najmniej 20 wpisów, wśród nich 20 niezweryfikowanych zgłoszeń.", "Pasuje 20"},
		{readmodel.CheckQuery{ID: "99"}, "Pasuje co najmniej 20 wpisów", "Nazwy się powtarzają"},
		{readmodel.CheckQuery{Search: "olek"}, "Nazwy się powtarzają", "co najmniej"},
		{readmodel.CheckQuery{Search: "777"}, "Zgłoszenie zweryfikowano.", "Nazwy się powtarzają"},
		{readmodel.CheckQuery{ID: "olek"}, "nikogo o takim identyfikatorze", "o takiej nazwie"},
		{readmodel.CheckQuery{Search: "olga"}, "o takiej nazwie ani o takim identyfikatorze", "jednak"},
	} {
		said := strings.ReplaceAll(seenIn(elements(t, w.check(t, c.query), "section")[0]), "\u00a0", " ")
		if !strings.Contains(said, c.says) || strings.Contains(said, c.saysNot) {
			t.Errorf("%+v: %q, want %q, not %q", c.query, said, c.says, c.saysNot)
		}
	}
	if page := w.check(t, readmodel.CheckQuery{ID: "99"}); !strings.Contains(page, `<a href="/servers?id=99">Serwery oszustów</a>`) {
		t.Error("no link to the rest of an id's entries")
	}
}

// What comes from events is text.
func TestHostileTextsStayText(t *testing.T) {
	none := events.Proofs{}
	for _, name := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' autofocus onfocus='x`, "</title></main>", "{{.}}", "\u202egnp.exe", "a\u200bb", "<!--",
	} {
		e := person(events.Scammers, "x", name, name, name, true, none, 1)
		e.ReportID = name
		w := newWorld(t, full(), e)
		for _, page := range []string{
			w.check(t, readmodel.CheckQuery{Search: name}), w.check(t, readmodel.CheckQuery{ID: name}),
			w.list(t, readmodel.ListQuery{List: events.Scammers, Search: name}, 1), w.list(t, readmodel.ListQuery{List: events.Scammers, ID: name}, 1),
		} {
			if n := len(elements(t, page, "script")); n != 1 {
				t.Errorf("%q: %d scripts", name, n)
			}
			if n := strings.Count(seen(t, page), name); n < 2 {
				t.Errorf("%q is shown %d times", name, n)
			}
			if said := strings.Contains(page, "są niewidoczne znaki"); said != strings.ContainsAny(name, "\u200b\u202e") {
				t.Errorf("%q: said to have hidden characters: %v", name, said)
			}
			for _, n := range elements(t, page, "img") {
				if !strings.HasPrefix(attr(n, "src"), "/api/chat/avatar/") {
					t.Errorf("%q: a picture of %q", name, attr(n, "src"))
				}
			}
		}
	}
}
