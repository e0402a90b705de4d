//go:build !race

package browser

import (
	"slices"
	"testing"
)

// strange lists what a page of the site has no business with: elements and attributes that could
// run or fetch something.
const strange = `(() => {
	const found = [];
	if (window.harmed !== undefined) found.push("a script of an entry has run");
	for (const e of document.querySelectorAll("*")) {
		const name = e.localName, src = e.getAttribute("src"), href = e.getAttribute("href");
		for (const a of e.attributes) if (a.name.startsWith("on") || a.name === "style") found.push(name + " " + a.name);
		if (["iframe", "object", "embed", "style", "base", "svg", "math", "video", "audio"].includes(name)) found.push(name);
		if (name === "script" && (!src?.startsWith("/assets/") || e.textContent)) found.push("script " + src);
		if (name === "img" && !src.startsWith("/api/chat/avatar/")) found.push("img " + src);
		if (name === "link" && !/^\/(assets\/|favicon)/.test(href)) found.push("link " + href);
		if (name === "a" && !/^(\/|#|https:\/\/(appeals|proofs)\.example\.org\/|\?)/.test(href)) {
			if (!/^(https?:|mailto:)/.test(href)) found.push("a " + href);
			const rel = (e.getAttribute("rel") ?? "").split(" ");
			for (const want of ["nofollow", "noreferrer"]) if (!rel.includes(want)) found.push("a without " + want + ": " + href);
		}
	}
	return found;
})()`

// Names, reasons and questions that are programs stay text wherever they are shown.
func TestHarmfulTextsStayTexts(t *testing.T) {
	t.Parallel()
	question := `"><script>window.harmed=1</script><img src=x onerror=window.harmed=1>`
	for _, path := range []string{
		"/scammers", "/scammers?limit=60&sort=za", "/servers", "/legit", "/scammers?id=99000000000000000000",
		search(harmfulName), search("99000000000000000000"), search(question), "/scammers?search=" + search(question)[len("/?search="):],
		"/servers?search=%3Cscript%3E", search("javascript:window.harmed=1"),
	} {
		t.Run(cut(path, 40), func(t *testing.T) {
			tb := open(t, shared.site, desk(false))
			if status := tb.get(path); status != 200 {
				t.Errorf("%s: status %d", path, status)
			}
			for _, s := range eval[[]string](tb, strange) {
				t.Errorf("%s: %s", path, s)
			}
		})
	}
}

// The texts are there, letter by letter, and not merely gone.
func TestHarmfulTextsAreShown(t *testing.T) {
	t.Parallel()
	tb := open(t, shared.site, desk(false))
	tb.get("/scammers")
	names := eval[[]string](tb, `[...document.querySelectorAll("article h3")].map(e => e.textContent)`)
	for _, want := range []string{harmfulName, reversedName, invisibleName, similarName} {
		if !slices.Contains(names, want) {
			t.Errorf("%q is not among the names %q", want, names)
		}
	}
	question := `"><b>"`
	tb.get(search(question))
	if got := eval[string](tb, `document.querySelector("input[type=search]").value`); got != question {
		t.Errorf("the field holds %q", got)
	}
}

// A name that turns the direction of writing around must not turn what follows it.
func TestReversedNamesEndWithThemselves(t *testing.T) {
	t.Parallel()
	tb := open(t, shared.site, phone(false))
	tb.get("/scammers")
	loose := eval[int](tb, `[...document.querySelectorAll("h3")].filter(e => e.querySelector("bdi") === null && getComputedStyle(e).unicodeBidi !== "isolate").length`)
	if loose > 0 {
		t.Errorf("%d names are not isolated", loose)
	}
}
