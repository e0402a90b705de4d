//go:build !race

package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// sight is a page in a state that readers get to see.
type sight struct {
	name, path string
	status     int64
	says       []string // in its main part
	loading    bool     // of the program that is loading for ever
	open       bool     // with everything on it that can be opened
}

func search(text string) string { return "/?search=" + url.QueryEscape(text) }

// sights are all of them: they are looked at in every look.
func sights() []sight {
	return []sight{
		{name: "check", path: "/", status: 200, says: []string{"Sprawdź"}},
		{name: "check-hit", path: "/?search=99000000000000000000", status: 200, says: []string{"na liście oszustów", harmfulName, "R-<b>0"}},
		{name: "check-risk", path: "/?search=99000000000000000001", status: 200, says: []string{"na liście ryzyka"}},
		{name: "check-legit", path: search(`Zaufana "Osoba" <b>`), status: 200, says: []string{"na liście zaufanych"}},
		{name: "check-part", path: search("ran"), status: 200, says: []string{"To mogą być inne osoby"}},
		{name: "check-similar", path: search("Administrator Wsparcia"), status: 200, says: []string{"Podobna nazwa: to może być inna osoba", similarName}},
		{name: "check-nobody", path: search("nikt taki nie istnieje"), status: 200, says: []string{"Nikogo nie znaleziono", "nie znaczy"}},
		{name: "check-bad", path: search(strings.Repeat("x", 101)), status: 400, says: []string{"100 znaków"}},
		{name: "scammers", path: "/scammers", status: 200, says: []string{"Oszuści", harmfulName, "wpis"}},
		{name: "scammers-empty", path: "/scammers?search=nikt+taki+nie+istnieje", status: 200, says: []string{"0"}},
		{name: "scammers-one", path: "/scammers?id=" + strings.Repeat("9", 64), status: 200, says: []string{longName}},
		{name: "servers", path: "/servers?sort=az&status=risk&limit=10", status: 200, says: []string{"Serwery"}},
		{name: "legit", path: "/legit?skip=30&limit=10", status: 200, says: []string{"zaufan"}},
		{name: "status", path: "/status", status: 200, says: []string{"Dane rejestru", "Działa", "Sprawdzono"}},
		{name: "api", path: "/api", status: 200, says: []string{"/api/scammers", "Registry-Min-Sequence"}},
		{name: "api-open", path: "/api", status: 200, says: []string{"od 0, do 20000, domyślnie 0"}, open: true},
		{name: "missing", path: "/nie-ma", status: 404, says: []string{"Nie ma takiej strony"}},
		{name: "loading", path: search("ktoś"), status: 503, says: []string{"wczytywanie"}, loading: true},
		{name: "loading-status", path: "/status", status: 200, says: []string{"Nie odpowiada", "Nie jest sprawdzane"}, loading: true},
	}
}

func (s sight) program() *program {
	if s.loading {
		return shared.loading
	}
	return shared.site
}

// see opens a sight in tb and checks what it says. The console tells of a page that is an error; nothing else does.
func (tb *tab) see(s sight) {
	tb.t.Helper()
	tb.origin = s.program().base
	if s.status >= 400 {
		tb.expect("Failed to load resource")
		defer tb.expect("")
	}
	if status := tb.get(s.path); status != s.status {
		tb.t.Errorf("%s: status %d", s.path, status)
	}
	if s.open {
		eval[int](tb, `[...document.querySelectorAll("details")].filter(e => e.open = true).length`)
	}
	if s.loading {
		tb.do(chromedp.Stop()) // else it would ask again while it is looked at
	}
	tb.wants(s.says...)
	if n := eval[int](tb, `document.querySelectorAll("h1").length`); n != 1 {
		tb.t.Errorf("%s: %d main headings", s.path, n)
	}
}

// Every page, at phone and desk width, in light and dark: it says what it must, axe-core finds
// nothing, and nothing sticks out.
func TestPages(t *testing.T) {
	for _, l := range []look{phone(false), phone(true), desk(false), desk(true)} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			for _, s := range sights() {
				t.Run(s.name, func(t *testing.T) {
					tb := open(t, s.program(), l)
					tb.see(s)
					tb.fits(l.width)
					tb.accessible()
					tb.picture(fmt.Sprintf("%s-%s", s.name, l))
				})
			}
		})
	}
}

// WCAG 2.2, 1.4.10: at 320 px nothing needs scrolling sideways.
func TestNarrow(t *testing.T) {
	t.Parallel()
	for _, s := range sights() {
		t.Run(s.name, func(t *testing.T) {
			tb := open(t, s.program(), look{width: 320, height: 640, mobile: true})
			tb.see(s)
			tb.fits(320)
			tb.picture(s.name + "-narrow")
		})
	}
}

// fits fails the test for what is wider than the screen, the first of it named.
func (tb *tab) fits(width int64) {
	tb.t.Helper()
	wide := eval[string](tb, fmt.Sprintf(`(() => {
		if (document.scrollingElement.scrollWidth <= %[1]d) return "";
		const e = [...document.body.querySelectorAll("*")].find(e => e.getBoundingClientRect().right > %[1]d + 1);
		return "scroll width " + document.scrollingElement.scrollWidth + ": " + (e ? e.outerHTML.slice(0, 200) : "?");
	})()`, width))
	if wide != "" {
		tb.t.Errorf("%s is wider than %d px: %s", tb.path(), width, wide)
	}
}

// Who prefers dark gets dark, and paper is white.
func TestScheme(t *testing.T) {
	t.Parallel()
	tb := open(t, shared.site, phone(false))
	tb.get("/")
	lightness := func() int {
		return eval[int](tb, `(() => { const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number); return r + g + b; })()`)
	}
	light := lightness()
	tb.resize(phone(true))
	if dark := lightness(); light < 600 || dark > 200 {
		t.Errorf("red, green and blue together: %d light, %d dark", light, dark)
	}
	call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	if shown := eval[string](tb, `getComputedStyle(document.querySelector("form")).display`); shown != "none" {
		t.Errorf("a form is printed: display %s", shown)
	}
}
