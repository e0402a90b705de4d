package site

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

func failure(t *testing.T, w *world, f Failed) string {
	t.Helper()
	page, err := w.site.Append(nil, "error", FailureOf(f))
	require.NoError(t, err)
	return wellFormed(t, string(page))
}

// Somebody who was taken off a list is cleared in words, which are the same whether anybody was
// there or not.
func TestNobodysPageClears(t *testing.T) {
	w := newWorld(t, full())
	const clears = "Tego wpisu nie ma w rejestrze: mógł zostać usunięty. To nie jest zarzut wobec nikogo."
	for path, want := range map[string]bool{"/wpis/scammers/s1": true, "/wpis/": true, "/wpis": true, "/wpisy": false, "/nikt": false} {
		if page := failure(t, w, Failed{Status: 404, Path: path}); strings.Contains(page, clears) != want || want && strings.Contains(page, "Sprawdź, czy jest pełny") {
			t.Errorf("%s: %s", path, seen(t, page))
		}
	}
}

// A text that is too long comes back whole, with its bound, in a form that asks the same question
// again.
func TestLongTextsAreKept(t *testing.T) {
	w := newWorld(t, full())
	for _, c := range []struct {
		path, param  string
		n            int
		action, says string
	}{
		{"/", "search", 301, `action="/" `, "najwyżej 300 znaków"},
		{"/", "search", 2000, `action="/" `, "najwyżej 300 znaków"},
		{"/scammers", "search", 101, `action="/scammers" `, "najwyżej 100 znaków"},
		{"/szukaj", "q", 400, `action="/szukaj" `, "najwyżej 100 znaków"},
	} {
		long := strings.Repeat("ż", c.n)
		page := failure(t, w, Failed{Status: 400, Path: c.path, Param: c.param, Search: long})
		if !strings.Contains(page, `name="`+c.param+`" value="`+long+`"`) || !strings.Contains(page, c.action) || !strings.Contains(seen(t, page), "Za długi tekst") || !strings.Contains(page, c.says) {
			t.Errorf("%+v: %s", c, page)
		}
	}
}

// No field cuts off what is pasted into it, and a check takes any length.
func TestFieldsCutNothing(t *testing.T) {
	w := newWorld(t, full(), people()...)
	for name, page := range map[string]string{
		"check": w.check(t, readmodel.CheckQuery{}), "answer": w.check(t, readmodel.CheckQuery{Search: "ćma"}), "list": w.list(t, readmodel.ListQuery{List: events.Legit}),
		"search": w.search(t, readmodel.RankedQuery{}, readmodel.RankedPage{}), "failure": failure(t, w, Failed{Status: 400, Path: "/szukaj", Param: "q"}),
	} {
		if strings.Contains(page, "maxlength") || strings.Contains(page, "data-most") == (name == "check" || name == "answer") || strings.Contains(page, "autofocus") {
			t.Errorf("%s: %s", name, page)
		}
	}
}

// The title of a page about somebody does not call the site a registry of frauds, and no address is
// said that is not whole.
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

// Of a text that is too long, the ids and @names in it can be checked by themselves.
func TestWithinLongTexts(t *testing.T) {
	w := newWorld(t, full())
	text := "Hej <@100000000000000001>, pisał @Zenon.Łotr. i <@100000000000000001> @x, 5, 123456789012345678901234 " + strings.Repeat("bla ", 100)
	page := failure(t, w, Failed{Status: http.StatusBadRequest, Param: "search", Path: "/", Search: text})
	var links []string
	for _, a := range elements(t, page, "a") {
		if strings.HasPrefix(attr(a, "href"), "/?search=") {
			links = append(links, seenIn(a))
		}
	}
	if got := strings.Join(links, " "); got != "100000000000000001 Zenon.Łotr" {
		t.Errorf("offered: %q", got)
	}
	if many := within(strings.Repeat("12345678901234567 1234567890123456 ", 2) + strings.Repeat("@ab @cd @ef @gh @ij @kl @mn @op @qr @st @uv @wx", 1)); len(many) != maxWithin {
		t.Errorf("%d are offered", len(many))
	}
}

// A failure that may pass keeps the question: the text in its field, and the address to ask again.
// A page that reloads itself can be told not to.
func TestFailuresKeepTheQuestion(t *testing.T) {
	w := newWorld(t, full())
	for _, status := range []int{429, 500, 503} {
		page := failure(t, w, Failed{Status: status, Text: "Trwa wczytywanie danych.", Path: "/", Search: "żółw <b>", Query: "search=%C5%BC%C3%B3%C5%82w%20%3Cb%3E", Again: status == 503})
		again := `<a class="button second" href="/?search=%C5%BC%C3%B3%C5%82w%20%3Cb%3E">Spróbuj ponownie</a>`
		stop := `href="/?search=%C5%BC%C3%B3%C5%82w%20%3Cb%3E&amp;odswiezanie=nie">Zatrzymaj odświeżanie</a>`
		if !strings.Contains(page, `value="żółw &lt;b&gt;"`) || !strings.Contains(page, again) || strings.Contains(page, stop) != (status == 503) {
			t.Errorf("%d: %s", status, page)
		}
		page = failure(t, w, Failed{Status: status, Text: "Trwa wczytywanie danych.", Path: "/scammers", Again: status == 503})
		if !strings.Contains(page, `href="/scammers">Spróbuj ponownie</a>`) || strings.Contains(page, `href="/scammers?odswiezanie=nie">`) != (status == 503) {
			t.Errorf("%d: %s", status, page)
		}
	}
	if page := failure(t, w, Failed{Status: 400, Param: "id", Path: "/", Search: "x y"}); !strings.Contains(page, `name="search" value="x y"`) {
		t.Errorf("a wrong id is lost: %s", page)
	}
}
