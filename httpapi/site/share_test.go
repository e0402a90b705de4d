package site

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// metas are the contents of a page's meta elements, by their name.
func metas(t *testing.T, page string) map[string]string {
	all := map[string]string{}
	for _, n := range elements(t, page, "meta") {
		all[attr(n, "name")+attr(n, "property")] = attr(n, "content")
	}
	return all
}

// What chats show of a link is the verdict, and never a name or an id: they keep it when the entry is delisted.
func TestPreviewsNameNobody(t *testing.T) {
	w := newWorld(t, full(), people()...)
	check := func(search string) string { return w.check(t, readmodel.CheckQuery{Search: search}) }
	const open, compare = "Otwórz, żeby zobaczyć wynik. Zawsze porównaj ID konta.", "Otwórz i porównaj całe ID: link niczego nie dowodzi."
	for name, c := range map[string]struct{ page, title, about string }{
		"accused":      {check("100000000000000001"), "Uwaga! To konto jest na liście oszustów", open},
		"server":       {check("200000000000000001"), "Uwaga! Ten serwer jest na liście oszustów", open},
		"risk":         {check("ćma"), "Ostrożnie! Na liście ryzyka jest konto o tej nazwie", open},
		"trusted":      {check("300000000000000001"), "Sprawdź to ID w rejestrze", open},
		"trusted-name": {check("ewa zaufana"), "Sprawdź ID: taką nazwę ma osoba zaufana", open},
		"several":      {check("100000000000000003"), "Uwaga! To konto jest na liście oszustów", open},
		"caution":      {check("zen0n lotr"), "Ostrożnie! Ta nazwa przypomina nazwę z listy oszustów", open},
		"unchecked":    {check("600 700 800"), "Tego nie możemy potwierdzić. Sprawdź ID", open},
		"none":         {check("712345678901234567"), "Nie ma na żadnej liście", open},
		"entry":        {w.entry(t, events.Scammers, "s1"), "Uwaga! To konto jest na liście oszustów", compare},
		"risk entry":   {w.entry(t, events.Scammers, "s2"), "Ostrożnie! To konto jest na liście ryzyka", compare},
		"legit entry":  {w.entry(t, events.Legit, "l1"), "Sprawdź to ID w rejestrze", compare},
		"home":         {w.check(t, readmodel.CheckQuery{}), "Sprawdź, zanim zapłacisz", "Wpisz nick, ID, wzmiankę albo link do profilu i sprawdź, czy ktoś zgłosił to konto lub serwer jako oszustwo."},
	} {
		all := metas(t, c.page)
		picture := strings.HasPrefix(all["og:image"], "https://rejestr.example.org/assets/share-home.")
		if !picture || all["og:title"] != c.title || all["og:description"] != c.about || all["description"] != c.about {
			t.Errorf("%s: %q", name, all)
		}
		for _, said := range all {
			for _, d := range people() {
				e := d.(events.Entry)
				if strings.Contains(said, e.Name) || strings.Contains(said, e.ChatID) {
					t.Errorf("%s: a preview says %q", name, said)
				}
			}
		}
	}
}

// A warning is there to copy where the verdict warns, with a link, and without a name, which could
// ping people or be a link.
func TestWarnings(t *testing.T) {
	ping := person(events.Scammers, "p", "900000000000000009", "@everyone https://evil.example", "", true, events.Proofs{}, 1)
	w := newWorld(t, full(), append(people(), ping)...)
	check := func(search string) string { return w.check(t, readmodel.CheckQuery{Search: search}) }
	for name, c := range map[string]struct{ page, text, link string }{
		"accused":      {check("100000000000000001"), "Uwaga! To konto jest na liście oszustów. ID: 100000000000000001. Porównaj ID, zanim zapłacisz:", "/wpis/scammers/s1"},
		"ping":         {check(ping.Name), "Uwaga! Na liście oszustów jest konto o tej nazwie. ID: 900000000000000009. Porównaj ID, zanim zapłacisz:", "/wpis/scammers/p"},
		"caution":      {check("zen0n lotr"), "", ""},
		"several":      {check("100000000000000003"), "Uwaga! To konto jest na liście oszustów. ID: 100000000000000003. Porównaj ID, zanim zapłacisz:", "/?id=100000000000000003"},
		"entry":        {w.entry(t, events.Scammers, "s1"), "Uwaga! To konto jest na liście oszustów. ID: 100000000000000001. Porównaj ID, zanim zapłacisz:", "/wpis/scammers/s1"},
		"trusted":      {check("300000000000000001"), "", ""},
		"trusted name": {check("ewa zaufana"), "", ""},
		"none":         {check("kowalski"), "", ""},
		"legit entry":  {w.entry(t, events.Legit, "l1"), "", ""},
	} {
		var found []*html.Node
		for _, n := range elements(t, c.page, "button") {
			if attr(n, "data-warning") != "" {
				found = append(found, n)
			}
		}
		switch {
		case c.text == "" && len(found) == 0:
		case len(found) != 1 || attr(found[0], "data-warning") != c.text || attr(found[0], "data-link") != c.link:
			t.Errorf("%s: %d warnings, want %q and %q", name, len(found), c.text, c.link)
		}
	}
}

// Every visitor finds where to report a fraud, if it is known.
func TestReportLinks(t *testing.T) {
	const link = `href="https://reports.example.org/oszustwo">Zgłoś oszustwo</a>`
	for _, cfg := range []Config{full(), {}} {
		w := newWorld(t, cfg, people()...)
		for search, want := range map[string]bool{"": true, "kowalski": true, "600 700 800": true, "1": true, "100000000000000001": false, "ewa zaufana": false} {
			if got := strings.Contains(w.check(t, readmodel.CheckQuery{Search: search}), link); got != (want && cfg.ReportURL != "") {
				t.Errorf("%q, report url %q: %v", search, cfg.ReportURL, got)
			}
		}
	}
	for address, want := range map[string]string{"https://x/{reportId}": "{reportId}", "mailto:a@b.example": "http", "javascript:alert(1)": "http"} {
		if err := CheckReports(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Where an id is missing, the field for it stands in the banner, before advice and appeal. It keeps
// the name that was typed, but nothing that would hide the answer.
func TestMissingIDIsAsked(t *testing.T) {
	digits := person(events.Legit, "d", "300000000000000009", "812345678901234567", "", true, events.Proofs{}, 1)
	w := newWorld(t, full(), append(people(), digits)...)
	for search, want := range map[string]struct {
		label string
		keeps bool
	}{
		"zenon łotr": {"ID rozmówcy", true}, "ćma": {"ID rozmówcy", true}, "Darmowe Nitro": {"ID tego serwera", true},
		"ewa zaufana": {"ID rozmówcy", true}, digits.Name: {"ID rozmówcy", true}, "zen0n lotr": {"ID rozmówcy", true}, "kowalski": {"ID rozmówcy", false}, "600 700 800": {"ID rozmówcy", false},
		"https://discord.gg/abc": {"ID rozmówcy", false}, "700000000000000001": {"ID rozmówcy", false}, // one digit off
		"100000000000000001": {}, "300000000000000001": {}, "712345678901234567": {},
	} {
		page := w.check(t, readmodel.CheckQuery{Search: search})
		_, banner, _ := strings.Cut(page, "<section class=\"verdict")
		banner, _, _ = strings.Cut(banner, "</section>")
		asks := strings.Contains(banner, `<label for="qid">`+want.label)
		keeps := strings.Contains(banner, `<input type="hidden" name="search" value="`+search+`">`)
		if asks != (want.label != "") || keeps != want.keeps || strings.Contains(page, `id="qid"`) != asks {
			t.Errorf("%s: asked %v, kept %v: %s", search, asks, keeps, banner)
		}
	}
}
