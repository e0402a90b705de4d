package site

import (
	"strings"
	"testing"

	"example.org/registry/events"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// Every reason has its words, which promise nothing, and the title names nobody.
func TestWordings(t *testing.T) {
	none := events.Proofs{}
	w := newWorld(t, full(),
		person(events.Scammers, "a", "900000000000000101", "Adam", "", false, none, 1),
		person(events.Scammers, "b", "900000000000000102", "adam", "", true, none, 1),
		person(events.Servers, "c", "900000000000000103", "Klub", "", false, none, 1),
		person(events.Legit, "e", "900000000000000105", "Ewa", "", true, none, 1),
		person(events.Legit, "k", "900000000000000107", "Klara", "", true, none, 1),
		person(events.Scammers, "f", "900000000000000106", "Klara", "", true, none, 1),
	)
	for search, want := range map[string]struct{ title, text string }{
		"ADAM":               {"Uwaga! Na liście oszustów są wpisy o tej nazwie", "Porównaj ID: tę samą nazwę może mieć ktoś inny."},
		"klub":               {"Ostrożnie! Na liście ryzyka jest serwer o tej nazwie", "moderacja jeszcze go nie sprawdziła"},
		"900000000000000101": {"Ostrożnie! To konto jest na liście ryzyka", "moderacja jeszcze go nie sprawdziła"},
		"900000000000000102": {"Uwaga! To konto jest na liście oszustów", "Moderacja potwierdziła to zgłoszenie."},
		"900000000000000105 900000000000000102 900000000000000103": {"Uwaga! W tym tekście są ID z rejestru, także z listy oszustów", "Moderacja potwierdziła"},
		"900000000000000105":     {"To ID osoby zaufanej: Ewa", "Sama transakcja nadal jest na Twoje ryzyko."},
		"ewa":                    {"Sprawdź ID: taką nazwę ma osoba zaufana", "Nazwę może przyjąć każdy, także oszust."},
		"klara":                  {"Ostrożnie! Tę nazwę mają i osoby zgłoszone, i zaufane", "rozstrzyga dopiero ID"},
		"900000000000000105 ok?": {"Ostrożnie! Sprawdź samo ID", "Sprawdź samo to ID: 900000000000000105"},
		"Ewa 711111111111111111": {"Ostrożnie! Nazwa jest w rejestrze, a tego ID nie ma", "Sprawdź samo to ID: 711111111111111111"},
		"Ewа":                    {"Ostrożnie! Ta nazwa tylko przypomina nazwę osoby zaufanej", "litera po literze"},
		"Ad\u200bam":             {"Ostrożnie! Ta nazwa przypomina nazwę z listy oszustów", "litera po literze"},
		"czy Adam to oszust":     {"Ostrożnie! Coś w tym tekście jest z listy oszustów", "sprawdź samo ID"},
		"711111111111111111":     {"Nie ma na żadnej liście", "To nie znaczy, że można zaufać."},
		"90000000000000010":      {"Czy na pewno to ID?", "różni się jedną cyfrą"},
		"https://example.org":    {"Tego nie możemy potwierdzić. Sprawdź ID", "to nie znaczy, że można zaufać"},
	} {
		page := w.check(t, readmodel.CheckQuery{Search: search})
		banner := seenIn(elements(t, page, "section")[0])
		if !strings.Contains(banner, want.title) || !strings.Contains(banner, want.text) {
			t.Errorf("%q: %q, want %+v", search, banner, want)
		}
		if title := seenIn(elements(t, page, "title")[0]); strings.ContainsAny(title, "0123456789") || strings.Contains(title, "Ewa") || strings.Contains(title, "Adam") {
			t.Errorf("%q: the title %q names somebody", search, title)
		}
		if seen := seen(t, page); !strings.Contains(seen, "Stan rejestru: 1 marca 2026, 10:15 UTC, wpisów: 6.") {
			t.Errorf("%q: the page does not say when it looked, and in how much", search)
		}
	}
}

// A page that does not know how old its data is says no time.
func TestUnknownAge(t *testing.T) {
	w := newWorld(t, full(), people()...)
	page, err := w.site.Append(nil, CheckPage{Asked: "x", Verdict: verdict.Verdict{Value: verdict.Unchecked}})
	if text := seen(t, string(page)); err != nil || !strings.Contains(text, "Stan rejestru: nieznany, wpisów: 0.") {
		t.Errorf("%v: %s", err, text)
	}
}
