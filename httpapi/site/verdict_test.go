package site

import (
	"fmt"
	"strings"
	"testing"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// The reason why a name is similar names the difference that is there.
func TestWhy(t *testing.T) {
	for _, c := range []struct{ name, search, want string }{
		{"Zenon Łotr", "zenon lotr", "Różnica: „ł” zamiast „l”."},
		{"lotr", "łotr", "Różnica: „l” zamiast „ł”."},
		{"maja", "mаja", "Różnica: zamiast zwykłego „a” jest „а” z cyrylicy."},
		{"admаn", "adman", "Różnica: zamiast zwykłego „a” jest „а” z cyrylicy (4. znak)."},
		{"αdmin", "admin", "Różnica: zamiast zwykłego „a” jest „α” z alfabetu greckiego (1. znak)."},
		{"paypal", "paypaI", "Różnica: zamiast „l” jest „I”."},
		{"zen0n", "zenon", "Różnica: zamiast litery „o” jest cyfra „0” (4. znak)."},
		{"ad\u200bmin", "admin", "Różnica: w jednej z nazw są niewidoczne znaki."},
		{"modern", "modem", "Wygląda prawie tak samo: różnice są zaznaczone."},
	} {
		if got := why(c.name, c.search); got != c.want {
			t.Errorf("%q for %q: %q, want %q", c.name, c.search, got, c.want)
		}
	}
}

// The gravest exact match decides what is said first; a name that only contains the text, or looks
// like it, does not.
func TestVerdict(t *testing.T) {
	none := events.Proofs{}
	w := newWorld(t, full(),
		person(events.Scammers, "a", "900000000000000101", "Adam", "", false, none, 1),
		person(events.Scammers, "b", "900000000000000102", "adam", "", true, none, 1),
		person(events.Servers, "c", "900000000000000103", "Klub", "", false, none, 1),
		person(events.Servers, "d", "900000000000000104", "Sklep", "", true, none, 1),
		person(events.Legit, "e", "900000000000000105", "Ewa", "", true, none, 1),
		person(events.Scammers, "f", "900000000000000106", "Basia Okrutna", "", true, none, 1),
		person(events.Scammers, "g", "900000000000000105", "Ktoś", "", false, none, 1),
	)
	for search, want := range map[string]string{
		"ADAM": "Na liście oszustów jest konto o tej nazwie", "klub": "Ostrożnie! Na liście ryzyka jest serwer o tej nazwie", "Sklep": "Na liście oszustów jest serwer o tej nazwie",
		"ewa": "Sprawdź ID: taką nazwę ma osoba zaufana", "basia": "Nie ma na żadnej liście", "nikt": "Nie ma na żadnej liście",
		"Ad\u200bam": "Ostrożnie! Ta nazwa przypomina nazwę z listy", "Ewа": "Ostrożnie! Ta nazwa tylko przypomina nazwę osoby zaufanej",
		"900000000000000101": "Ostrożnie! To konto jest na liście ryzyka", "900000000000000102": "Uwaga! To konto jest na liście oszustów", "900000000000000103": "Ostrożnie! Ten serwer jest na liście ryzyka",
		"900000000000000104": "Uwaga! Ten serwer jest na liście oszustów", "900000000000000105": "Ostrożnie! To konto jest na liście ryzyka", "discord.gg/abc": "Z zaproszenia nie da się odczytać serwera",
		"https://example.org": "To adres strony",
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
		person(events.Legit, "e", "900000000000000105", "Ewa Zaufana", "", true, none, 1),
		person(events.Scammers, "f", "6", "Ewa Zaufаna", "", true, none, 1), // with a Cyrillic а
		person(events.Scammers, "g", "900000000000000777", "Olek", "", true, none, 1),
	}
	for i := range readmodel.MaxGroup + 1 {
		all = append(all, person(events.Servers, fmt.Sprint("h", i), fmt.Sprint(1000+i), "Klub", "", false, none, i),
			person(events.Servers, fmt.Sprint("i", i), "900000000000000099", fmt.Sprint("Klub ", i), "", false, none, i))
	}
	w := newWorld(t, full(), all...)
	for _, c := range []struct {
		query         readmodel.CheckQuery
		says, saysNot string
	}{
		{readmodel.CheckQuery{Search: "ewa zaufana"}, "zgłoszono też kogoś o takiej samej albo podobnej nazwie", "jednak"},
		{readmodel.CheckQuery{ID: "900000000000000105"}, "To ID osoby zaufanej: Ewa Zaufana", "podobnej"},
		{readmodel.CheckQuery{Search: "klub"}, "Znaleziono co najmniej 20 wpisów, wśród nich 20 niesprawdzonych zgłoszeń.", "Znaleziono 20"},
		{readmodel.CheckQuery{ID: "900000000000000099"}, "Znaleziono co najmniej 20 wpisów", "tę samą nazwę"},
		{readmodel.CheckQuery{Search: "olek"}, "Porównaj ID: tę samą nazwę może mieć ktoś inny", "co najmniej"},
		{readmodel.CheckQuery{Search: "900000000000000777"}, "Moderacja potwierdziła to zgłoszenie.", "tę samą nazwę"},
		{readmodel.CheckQuery{ID: "olek"}, "Na liście oszustów jest konto o tej nazwie", "o tym ID"},
		{readmodel.CheckQuery{Search: "olga"}, "Nikt o tej nazwie nie jest na liście. To nie znaczy, że można zaufać.", "jednak"},
	} {
		said := strings.ReplaceAll(seenIn(elements(t, w.check(t, c.query), "section")[0]), "\u00a0", " ")
		if !strings.Contains(said, c.says) || strings.Contains(said, c.saysNot) {
			t.Errorf("%+v: %q, want %q, not %q", c.query, said, c.says, c.saysNot)
		}
	}
	if page := w.check(t, readmodel.CheckQuery{ID: "900000000000000099"}); !strings.Contains(page, `<a href="/servers?id=900000000000000099">Serwery</a>`) {
		t.Error("no link to the rest of an id's entries")
	}
}

// A check has at most MaxPage bytes, whatever is found by whichever reading, whom it imitates, and
// what an operator advises.
func TestChecksAreBounded(t *testing.T) {
	dear := strings.Repeat("о", 60) + strings.Repeat("&", 30) // Cyrillic
	name, none := strings.ReplaceAll(dear, "о", "o"), events.Proofs{ID: strings.Repeat("p", 64)}
	var all []events.Data
	for i := range readmodel.MaxGroup + 1 {
		one := func(l events.List, kind, name string, verified bool) {
			e := person(l, fmt.Sprint(kind, i), fmt.Sprintf("9900%016d", i), name, strings.Repeat(`"`, 19_000), verified, none, 1)
			if i == 0 {
				e.ChatID = strings.Repeat("'", 64)
			}
			all = append(all, e)
		}
		one(events.Scammers, "s", name, i%2 == 0)
		one(events.Servers, "g", name+strings.Repeat("&", i), true)
		one(events.Scammers, "c", dear, true)
		one(events.Legit, "l", strings.Repeat("ο", 60)+strings.Repeat("&", 30), true) // Greek
		one(events.Legit, "m", name, true)
	}
	cfg := full()
	for _, section := range []string{"Oszustwo", "Ryzyko", "Zaufana osoba", "Brak wpisu"} {
		cfg.Advice += "## " + section + "\n" + strings.Repeat("a", 7_900) + "\n"
	}
	w := newWorld(t, cfg, all...)
	for _, search := range []string{
		name, dear, "@" + dear, dear + ",", name[:40], name[:40] + ", " + dear[:50], "99000000000000000001", "99000000000000000001 99000000000000000002 x",
		strings.Repeat("'", 64), strings.Repeat(`"`, 100), strings.Repeat("&", 30), name[:60] + " 99000000000000000001, &&, " + dear[:10],
		strings.Repeat("q", 40) + "," + strings.Repeat("&", 50) + ",o", "<@" + strings.Repeat("9", 64) + ">",
	} {
		if page := w.check(t, readmodel.CheckQuery{Search: search}); len(page) > MaxPage-1_000 {
			t.Logf("%.30q: %d bytes", search, len(page))
		}
	}
}
