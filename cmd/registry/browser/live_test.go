//go:build unix && !race

package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// until waits until an expression is true in the page. It asks again each time: a poll inside the
// page ends with an error if the page is only being loaded.
func (tb *tab) until(expression string) {
	tb.t.Helper()
	if !tb.within(24*time.Hour, expression) { // as long as the tab lasts
		tb.t.Fatalf("%s is not true: %v", expression, tb.ctx.Err())
	}
}

// within waits so long for an expression to be true, or to the end of the tab, and reports whether
// it is.
func (tb *tab) within(limit time.Duration, expression string) bool {
	again, end := time.NewTicker(50*time.Millisecond), time.After(limit)
	defer again.Stop()
	for {
		if is, err := chromedp.Run(tb.ctx, chromedp.Evaluate[bool]("!!("+expression+")")); is && err == nil {
			return true
		}
		select {
		case <-again.C:
		case <-end:
			return false
		case <-tb.ctx.Done():
			return false
		}
	}
}

// TestAPIIsTriedInPlace: the API's page asks this server and shows the answer beside the question.
func TestAPIIsTriedInPlace(t *testing.T) {
	t.Parallel()
	tb := open(t, shared.site, desk(false))
	tb.get("/api")
	tb.do(click("#listScammers .examples a"))
	tb.until(`document.querySelector("#listScammers .answer pre")?.textContent.includes('"hasMore": true')`)
	if shown := eval[string](tb, `document.querySelector("#listScammers .answer").innerText`); !strings.Contains(shown, "200") || !strings.Contains(shown, "Registry-Sequence") {
		t.Errorf("status and headers are not told: %s", cut(shown, 300))
	}
	if filled := eval[string](tb, `const field = document.querySelector("#check-search"); const was = field.value; field.value = ""; was`); filled != "nitro" {
		t.Errorf("the form is filled with %q", filled)
	}
	tb.do(chromedp.SendKeys(chromedp.CSS("#check-search"), "99000000000000000000"), click("#check form button"))
	tb.until(`document.querySelector("#check .answer pre")?.textContent.includes('"kind": "scammers"')`)
	tb.do(click("#avatar .examples a"))
	tb.until(`document.querySelector("#avatar .answer img")?.naturalWidth === 64`)
	if tb.path() != "/api" {
		t.Errorf("the page has gone to %s", tb.path())
	}
	tb.accessible()
	tb.picture("api-tried")
}

// TestAPIExamplesAreChosen: one example of a check and one of a bot is shown at a time, with and
// without scripts; with them it can be copied.
func TestAPIExamplesAreChosen(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*tab) *tab{"scripts": same, "without-scripts": (*tab).withoutScripts} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := prepare(open(t, shared.site, phone(false)))
			for path, example := range map[string]string{"/boty/zakresy": "bot-", "/api": "check-"} {
				tb.get(path)
				for _, language := range []string{"py", "go", "mjs", "sh"} {
					tb.do(click("label[for=" + example + language + "]"))
					shown := eval[string](tb, `[...document.querySelectorAll(".langs [data-example^=`+example+`]")].filter(e => e.checkVisibility()).map(e => e.dataset.example).join()`)
					if shown != example+language {
						t.Errorf("%s: after a click on %s the examples shown are %q", path, language, shown)
					}
				}
			}
			copies := eval[int](tb, `[...document.querySelectorAll("[data-copy-code]")].filter(e => e.checkVisibility()).length`)
			if name != "scripts" {
				if copies != 0 {
					t.Errorf("%d buttons to copy, which do nothing", copies)
				}
				return
			}
			tb.get("/api")
			tb.do(click("#check-sh + label + .code [data-copy-code]"))
			tb.until(`document.querySelector("[data-copy-code]").firstChild.data !== "Kopiuj"`)
		})
	}
}

// TestAPIErrorIsTriedInPlace: an example of an error is shown as one.
func TestAPIErrorIsTriedInPlace(t *testing.T) {
	t.Parallel()
	tb := open(t, shared.site, phone(false))
	tb.expect("Failed to load resource")
	tb.get("/api")
	tb.do(click("#donationStatus .examples a"))
	tb.until(`document.querySelector("#donationStatus .answer pre")?.textContent.includes("Nie znaleziono.")`)
}

// TestAPIIsTriedWithoutScripts: without scripts, examples and forms lead to the answers themselves.
func TestAPIIsTriedWithoutScripts(t *testing.T) {
	t.Parallel()
	tb := open(t, shared.site, desk(false)).withoutScripts()
	tb.get("/api")
	tb.loads(click("#listServers .examples a"))
	if !strings.HasPrefix(tb.path(), "/api/servers?") {
		t.Errorf("at %s", tb.path())
	}
	tb.back()
	tb.loads(click("#listLegit form button"))
	if !strings.HasPrefix(tb.path(), "/api/legit?") {
		t.Errorf("at %s", tb.path())
	}
}

// TestAPIExamplesWork: the server answers every example as the page says.
func TestAPIExamplesWork(t *testing.T) {
	t.Parallel()
	tb := open(t, shared.site, desk(false))
	tb.expect("Failed to load resource")
	tb.get("/api")
	wrong := evalAsync[[]string](tb, `(async () => {
		const wrong = [], links = [...document.querySelectorAll(".examples a")];
		if (links.length < 7) wrong.push("only " + links.length + " examples");
		for (const a of links) {
			const want = Number(a.closest("li").textContent.match(/\b4\d\d\b/)?.[0] ?? 200), got = (await fetch(a.href)).status;
			if (got !== want) wrong.push(a.href + ": " + got);
		}
		return wrong;
	})()`)
	for _, w := range wrong {
		t.Error(w)
	}
}

// TestStatusStaysFresh: the status page refreshes itself until told not to.
func TestStatusStaysFresh(t *testing.T) {
	t.Parallel()
	tb := open(t, shared.site, phone(false))
	tb.get("/status")
	tb.do(chromedp.Evaluate[chromedp.Void](`window.first = document.querySelector("time[data-local=second]").dateTime`))
	tb.until(`document.querySelector("time[data-local=second]").dateTime !== window.first`)
	tb.do(click(".refresh button"))
	tb.until(`document.querySelector(".refresh button").textContent.startsWith("Odświeżaj")`)
	tb.accessible()
}

// TestLoadingAsksAgain: while the server is loading the page says so, and asks again by itself,
// with and without scripts, until it is told not to.
func TestLoadingAsksAgain(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*tab) *tab{"scripts": same, "without-scripts": (*tab).withoutScripts} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := prepare(open(t, shared.loading, phone(false)))
			tb.expect("Failed to load resource")
			tb.get("/scammers")
			tb.wants("wczytywanie")
			if status := tb.load(); status != 503 || tb.path() != "/scammers" {
				t.Errorf("asked again: %d at %s", status, tb.path())
			}
			tb.get(eval[string](tb, `document.querySelector("[href*=odswiezanie]").getAttribute("href")`))
			if text := tb.text(); strings.Contains(text, "odświeży się") || !strings.Contains(text, "Spróbuj ponownie") {
				t.Errorf("not stopped: %s", text)
			}
		})
	}
}
