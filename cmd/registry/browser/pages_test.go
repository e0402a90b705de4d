//go:build unix && !race && nightly

package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"example.org/registry/cmd/registry/registrytest"
)

// sight is a page in one of its states.
type sight struct {
	name, path string
	status     int64
	says       []string // in its main part
	loading    bool     // of the program that never finishes loading
	open       bool     // open everything that opens
	also       []check  // beside those of every page
}

// check looks at a page that is loaded.
type check func(*tab, sight)

func search(text string) string { return "/?search=" + url.QueryEscape(text) }

// sights returns every page in all its states.
func sights() []sight {
	return []sight{
		{name: "check", path: "/", status: 200, says: []string{"Sprawdź"}, also: []check{byKeyboard, printed}},
		{name: "check-hit", path: "/?search=99000000000000000000", status: 200, says: []string{"na liście oszustów", harmfulName, "R-<b>0"}, also: []check{printed}},
		{name: "check-risk", path: "/?search=99000000000000000001", status: 200, says: []string{"na liście ryzyka"}},
		{name: "check-legit", path: search(`Zaufana "Osoba" <b>`), status: 200, says: []string{"taką nazwę ma osoba zaufana", "ID rozmówcy"}},
		{name: "check-trusted", path: "/?search=99000000000000000007", status: 200, says: []string{"To ID osoby zaufanej", "To jeszcze nie gwarancja"}},
		{name: "check-other", path: search("maja1997 111111111111111111"), status: 200, says: []string{"Tego ID nie ma na żadnej liście", "maja1997"}},
		{name: "check-telephone", path: search("600 700 800"), status: 200, says: []string{"Tego nie możemy potwierdzić"}},
		{name: "check-part", path: search("Żelazny Bednarz"), status: 200, says: []string{"Nazwy i ID, w których jest ten tekst"}},
		{name: "check-similar", path: search("Administrator Wsparcia"), status: 200, says: []string{"przypomina nazwę z listy", similarName}, also: []check{byKeyboard, printed}},
		{name: "check-nobody", path: "/?id=712345678901234567", status: 200, says: []string{"Nie ma na żadnej liście", "nie znaczy"}},
		{name: "check-imitates", path: search("zаufana \"osoba\" <b>"), status: 200, says: []string{"tylko przypomina nazwę osoby zaufanej"}, also: []check{printed}},
		{name: "check-paste", path: search("Pusty Powód, ID 9900 0000 0000 0000 0000"), status: 200, says: []string{"To konto jest na liście oszustów", "taka nazwa jest na liście ryzyka"}},
		{name: "check-invitation", path: search("https://discord.gg/abc"), status: 200, says: []string{"Tego nie możemy potwierdzić"}},
		{name: "check-open", path: "/?search=99000000000000000000", status: 200, says: []string{"828 828 828"}, open: true},
		{name: "check-long", path: search(strings.Repeat("x ", 200)), status: 200, says: []string{"Tego nie możemy potwierdzić"}},
		{name: "scammers", path: "/scammers", status: 200, says: []string{"Zgłoszeni", harmfulName, "wpis"}, also: []check{copiesIDs, showsNames}},
		{name: "scammers-empty", path: "/scammers?search=nikt+taki+nie+istnieje", status: 200, says: []string{"0"}},
		{name: "scammers-one", path: "/scammers?id=" + strings.Repeat("9", 64), status: 200, says: []string{longName}, also: []check{byKeyboard, printed}},
		{name: "scammers-page", path: "/scammers?skip=30&proofs=with", status: 200, says: []string{"Pozycje 31–", "Z dowodami"}},
		{name: "scammers-beyond", path: "/scammers?skip=19980", status: 200, says: []string{"Nie ma tylu stron"}},
		{name: "entry", path: "/wpis/scammers/browser-0", status: 200, says: []string{"To konto jest na liście oszustów", "Co zrobić teraz", harmfulName, "Zobacz dowody", "21 listopada 2199", "R-<b>0"}, also: []check{printed}},
		{name: "entry-risk", path: "/wpis/scammers/browser-3", status: 200, says: []string{"To konto jest na liście ryzyka", longName, "Odwołaj się"}},
		{name: "entry-server", path: "/wpis/servers/browser-6", status: 200, says: []string{"Ten serwer jest na liście ryzyka", "Co zgłoszono"}},
		{name: "entry-legit", path: "/wpis/legit/browser-7", status: 200, says: []string{"To konto jest na liście zaufanych", "Nr wpisu"}, also: []check{printed}},
		{name: "entry-nobody", path: "/wpis/scammers/browser-7", status: 404, says: []string{"Tego wpisu nie ma w rejestrze: mógł zostać usunięty. To nie jest zarzut wobec nikogo."}},
		{name: "words", path: "/szukaj", status: 200, says: []string{"Szukaj po słowach"}},
		{name: "servers", path: "/servers?sort=az&status=risk&limit=10", status: 200, says: []string{"Serwery"}},
		{name: "legit", path: "/legit?skip=30&limit=10", status: 200, says: []string{"zaufan"}, also: []check{byKeyboard}},
		{name: "words-found", path: "/szukaj?q=konto", status: 200, says: []string{"Wszystkie", "Zaufani"}, also: []check{copiesIDs}},
		{name: "about", path: "/o-rejestrze", status: 200, says: []string{"O rejestrze", "wersja pokazowa", "Kto prowadzi rejestr", "Co zostaje po usunięciu"}, also: []check{printed}},
		{name: "status", path: "/status", status: 200, says: []string{"Dane rejestru", "Działa", "Sprawdzono"}, also: []check{byKeyboard, printed}},
		{name: "api", path: "/api", status: 200, says: []string{"/api/check?id=", "Python"}, also: []check{byKeyboard}},
		{name: "bots", path: "/boty", status: 200, says: []string{"discordbot.mjs", "nie banuj", "Bot, który nie mówi, o kogo pyta"}, also: []check{byKeyboard}},
		{name: "missing", path: "/nie-ma", status: 404, says: []string{"Nie ma takiej strony"}},
		{name: "loading", path: search("ktoś"), status: 503, says: []string{"wczytywanie"}, loading: true},
		{name: "loading-status", path: "/status", status: 200, says: []string{"Rejestr nie odpowiada", "Nie sprawdzamy"}, loading: true},
		{name: "loading-entry", path: "/wpis/scammers/browser-0", status: 503, says: []string{"wczytywanie"}, loading: true},
	}
}

func (s sight) program() *registrytest.Server {
	if s.loading {
		return shared.loading
	}
	return shared.site
}

// see opens a sight and checks what it says. The console may mention a page that is an error, and
// nothing else.
func (tb *tab) see(s sight) {
	tb.t.Helper()
	tb.origin = s.program().HTTP
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
	tb.wants(s.says...)
	if n := eval[int](tb, `document.querySelectorAll("h1").length`); n != 1 {
		tb.t.Errorf("%s: %d main headings", s.path, n)
	}
}

// TestPages loads every page once and has every check look at it, at phone and desk width, in light
// and dark. It says what it must, harmful texts stay texts, axe-core finds nothing, nothing is wider
// than the screen (nor at 320 px: WCAG 2.2, 1.4.10; nor there with letters twice as large: 1.4.4),
// and without the style sheet pictures keep their size.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, s := range sights() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			tb := open(t, s.program(), phone(false))
			tb.see(s)
			tb.harmless()
			for _, l := range []look{phone(false), desk(true)} { // colors do not depend on the width
				tb.resize(l)
				tb.fits(l.width)
				tb.accessible()
			}
			for _, c := range s.also {
				tb.resize(desk(false))
				c(tb, s)
			}
			tb.resize(look{width: 320, height: 568, mobile: true})
			tb.fits(320)
			tb.do(chromedp.Evaluate[chromedp.Void](`document.documentElement.style.fontSize = "200%"`))
			tb.fits(320)
			tb.unstyled()
		})
	}
}

// unstyled takes the style sheet away. Pictures have a size of their own, so the words stay in
// sight.
func (tb *tab) unstyled() {
	tb.t.Helper()
	tb.do(chromedp.Evaluate[chromedp.Void](`document.documentElement.style.fontSize = ""; for (const s of document.styleSheets) s.disabled = true`))
	for _, large := range eval[[]string](tb, `[...document.querySelectorAll("svg, img")].filter(e => !(e.getAttribute("width") && e.getAttribute("height")) || e.getBoundingClientRect().height > 150).map(e => e.outerHTML.slice(0, 100))`) {
		tb.t.Errorf("%s: a picture without a size: %s", tb.path(), large)
	}
}

// fits fails the test if the page is wider than the screen, and names the first element that is.
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

// TestScheme: a reader who prefers dark gets dark.
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
}

// printed: a print is black on white, also if the reader prefers dark, and has nothing to click.
func printed(tb *tab, s sight) {
	tb.resize(look{width: 720, height: 1000, dark: true})
	call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print",
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}})
	for _, faint := range eval[[]string](tb, `[...document.querySelectorAll("main *")].filter(e => e.checkVisibility() && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).filter(e => {
		const [r, g, b] = getComputedStyle(e).color.match(/[\d.]+/g).map(Number);
		return r + g + b > 3 * 120;
	}).map(e => e.outerHTML.slice(0, 120))`) {
		tb.t.Errorf("%s: printed too faintly: %s", s.path, faint)
	}
	if n := eval[int](tb, `[...document.querySelectorAll("form, button, .pages, .tabs")].filter(e => e.checkVisibility({visibilityProperty: true})).length`); n > 0 {
		tb.t.Errorf("%s: %d things to click are printed", s.path, n)
	}
	tb.accessible()
}

// buttons wants everything that the selector finds to be a button of that accessible name, as the
// browser computes it.
func (tb *tab) buttons(name, selector string) {
	tb.t.Helper()
	document := call(tb, runtime.Evaluate, runtime.EvaluateParams{Expression: "document"}).Result
	found := call(tb, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: document.ObjectID, Role: "button", AccessibleName: name}).Nodes
	if want := eval[int](tb, fmt.Sprintf("document.querySelectorAll(%q).length", selector)); want == 0 || len(found) != want {
		tb.t.Errorf("%s: %d buttons are called %q, want %d", tb.path(), len(found), name, want)
	}
}

// copiesIDs: every card has one link to its page, and a button that copies the id and says whose.
func copiesIDs(tb *tab, s sight) {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`) // as selectors have them
	for _, name := range eval[[]string](tb, `[...new Set([...document.querySelectorAll("article.e h3")].map(e => e.textContent))]`) {
		tb.buttons("Kopiuj ID: "+strings.Join(strings.Fields(name), " "), `article.e .copyid[aria-label="Kopiuj ID: `+quoted.Replace(name)+`"]`)
	}
	for _, many := range eval[[]string](tb, `[...document.querySelectorAll("article.e")].filter(e => e.querySelectorAll("a[href^='/wpis/']").length !== 1 || !e.querySelector(".id")).map(e => e.textContent.slice(0, 80))`) {
		tb.t.Errorf("%s: not one link: %s", s.path, many)
	}
}
