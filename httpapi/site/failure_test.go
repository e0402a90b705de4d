package site

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

func failure(t *testing.T, w *world, f Failed) string {
	t.Helper()
	page, err := w.site.Append(nil, f)
	require.NoError(t, err)
	return wellFormed(t, string(page))
}

// Somebody who was taken off a list is cleared in words, which are the same whether anybody was there or not.
func TestNobodysPageClears(t *testing.T) {
	w := newWorld(t, full())
	const clears = "Tego wpisu nie ma w rejestrze: mógł zostać usunięty. To nie jest zarzut wobec nikogo."
	for path, want := range map[string]bool{"/wpis/scammers/s1": true, "/wpis/": true, "/wpis": true, "/wpisy": false, "/nikt": false} {
		if page := failure(t, w, Failed{Status: 404, Path: path}); strings.Contains(page, clears) != want || want && strings.Contains(page, "Sprawdź, czy jest pełny") {
			t.Errorf("%s: %s", path, seen(t, page))
		}
	}
}

// An empty registry says so: nothing is checked, and nobody is cleared. Who may have paid finds what to do, but not on a
// page that is not there.
func TestFailuresSayWhy(t *testing.T) {
	w := newWorld(t, full())
	for _, c := range []struct {
		failed Failed
		says   string
		card   bool
	}{
		{Failed{Status: 503, Text: "Trwa wczytywanie danych.", Empty: true, Path: "/"}, "Rejestr jest pusty", true},
		{Failed{Status: 503, Text: "Trwa wczytywanie danych.", Path: "/"}, "To nie znaczy, że tej osoby nie ma na liście.", true},
		{Failed{Status: 503, Text: "Serwer jest przeciążony.", Path: "/"}, "Serwer jest przeciążony", true},
		{Failed{Status: 429, Path: "/"}, "To nie znaczy, że tej osoby nie ma na liście.", true},
		{Failed{Status: 404, Path: "/nic"}, "Nie ma takiej strony", false},
		{Failed{Status: 405, Path: "/"}, "można tylko czytać", false},
	} {
		page := failure(t, w, c.failed)
		if text := seen(t, page); !strings.Contains(text, c.says) || strings.Contains(page, `id="po-wplacie"`) != c.card {
			t.Errorf("%+v: %s", c.failed, text)
		}
	}
}

// The title of a page about somebody does not call the site a registry of frauds, and no address is said that is not whole.
func TestTitlesAccuseNobody(t *testing.T) {
	for base, cfg := range map[string]Config{"": {}, "https://rejestr.example.org": full()} {
		w := newWorld(t, cfg, people()...)
		for name, c := range map[string]struct{ page, ends, canonical string }{
			"start":   {w.check(t, readmodel.CheckQuery{}), " – Rejestr oszustów</title>", "/"},
			"answer":  {w.check(t, readmodel.CheckQuery{Search: "ewa zaufana"}), " – Rejestr</title>", ""},
			"trusted": {w.entry(t, events.Legit, "l1"), " – osoba zaufana – Rejestr</title>", "/wpis/legit/l1"},
			"list":    {w.list(t, readmodel.ListQuery{List: events.Legit}), "Zaufani – Rejestr</title>", ""},
			"others":  {w.list(t, readmodel.ListQuery{List: events.Servers}), "Serwery – Rejestr oszustów</title>", ""},
		} {
			if !strings.Contains(c.page, c.ends) {
				t.Errorf("%s: the title does not end with %q", name, c.ends)
			}
			said := strings.Contains(c.page, `rel="canonical"`)
			if said != (base != "" && c.canonical != "") || said && !strings.Contains(c.page, `<link rel="canonical" href="`+base+c.canonical+`">`) {
				t.Errorf("%s below %q: canonical said: %v", name, base, said)
			}
		}
	}
}

// A failure that may pass keeps the question: the text in its field, and the address to ask again.
func TestFailuresKeepTheQuestion(t *testing.T) {
	w := newWorld(t, full())
	for _, status := range []int{429, 500, 503} {
		page := failure(t, w, Failed{Status: status, Text: "Trwa wczytywanie danych.", Path: "/", Search: "żółw <b>", Query: "search=%C5%BC%C3%B3%C5%82w%20%3Cb%3E"})
		again := `<a class="button second" href="/?search=%C5%BC%C3%B3%C5%82w%20%3Cb%3E">Spróbuj ponownie</a>`
		if !strings.Contains(page, `value="żółw &lt;b&gt;"`) || !strings.Contains(page, again) {
			t.Errorf("%d: %s", status, page)
		}
		page = failure(t, w, Failed{Status: status, Text: "Trwa wczytywanie danych.", Path: "/scammers"})
		if !strings.Contains(page, `href="/scammers">Spróbuj ponownie</a>`) {
			t.Errorf("%d: %s", status, page)
		}
	}
	if page := failure(t, w, Failed{Status: 400, Param: "id", Path: "/", Search: "x y"}); !strings.Contains(page, `name="search" value="x y"`) {
		t.Errorf("a wrong id is lost: %s", page)
	}
}
