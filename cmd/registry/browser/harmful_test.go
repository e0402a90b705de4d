//go:build unix && !race && nightly

package browser

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.org/registry/events"
)

// Texts of people who want to run something in the readers' browsers, or to look like somebody
// else. A payload that ran would set window.harmed, which strange looks at.
const (
	harmfulName   = `<script>window.harmed=1</script><img src=x onerror="window.harmed=1">`
	harmfulReason = "<script>window.harmed=1</script>\n\n<img src=x onerror=window.harmed=1>\n\n" +
		"[klik](javascript:window.harmed=1) [dane](data:text/html,<script>window.harmed=1</script>) " +
		"![obraz](https://evil.example/x.png) <style>body{display:none}</style> " +
		"`</code></pre><script>window.harmed=1</script>` {{.}} ${window.harmed=1} " +
		"<iframe src=//evil.example></iframe> <a href=//evil.example onclick=window.harmed=1>x</a> [zwykły](https://example.org/dowody)"
	reversedName  = "\u202Egnp.exe\u202C \u2066odwrócony\u2069"
	invisibleName = "Mo\u200Bde\u200Drator\u2060 \u00ADOficjalny"
	longName      = "Najdłuższa"
	similarName   = "Administrаtor Wsparcia" // with a Cyrillic а
)

// harmful returns entries that are newer than those of the demonstration, so they are on top of the
// lists.
func harmful() []events.Entry {
	const longWord = "ŁańcuchBezSpacji"
	newest := time.Date(2199, time.November, 21, 12, 0, 0, 0, time.UTC) // newer than the demonstration's, whenever that is
	entries := []events.Entry{
		{Name: harmfulName, Reason: harmfulReason, Verified: true, Proofs: events.Proofs{ID: "p-1"}},
		{Name: reversedName, Reason: "Nazwa z odwróconym kierunkiem pisma: " + reversedName, Verified: false},
		{Name: invisibleName, Reason: "Nazwa z niewidocznymi znakami.", Verified: true, Proofs: events.Proofs{Private: true}},
		{Name: longName + strings.Repeat(longWord, 11), Reason: strings.Repeat(longWord, 1000), Verified: false, ChatID: strings.Repeat("9", 64)},
		{Name: similarName, Reason: "Podszywał się pod obsługę.", Verified: true},
		{Name: "Pusty Powód", Reason: "", Verified: false},
		{Name: harmfulName, Reason: harmfulReason, Verified: false, List: events.Servers},
		{Name: "Zaufana \"Osoba\" <b>", Reason: "Pośrednik od lat.", Verified: true, List: events.Legit},
	}
	for i := range entries {
		e := &entries[i]
		e.EntryID, e.ReportID = fmt.Sprintf("browser-%d", i), fmt.Sprintf("R-<b>%d", i)
		e.ReportedAt, e.Revision = newest.Add(-time.Duration(i)*time.Minute), 1
		if e.List == "" {
			e.List = events.Scammers
		}
		if e.ChatID == "" {
			e.ChatID = fmt.Sprintf("9900000000000000%04d", i)
		}
	}
	return entries
}

// strange lists elements and attributes that could run or fetch something, and that no page of the
// site has.
const strange = `(() => {
	const found = [];
	if (window.harmed !== undefined) found.push("a script of an entry has run");
	for (const e of document.querySelectorAll("*")) {
		const name = e.localName, src = e.getAttribute("src"), href = e.getAttribute("href");
		for (const a of e.attributes) if (a.name.startsWith("on") || a.name === "style") found.push(name + " " + a.name);
		if (["iframe", "object", "embed", "style", "base", "math", "video", "audio"].includes(name) && !(name === "style" && e.parentElement === document.head)) found.push(name);
		if (name === "svg" && (!e.closest("[aria-hidden=true]") || e.querySelector("script, a, image, use, foreignObject, animate, set"))) found.push(name);
		if (name === "script" && (!src?.startsWith("/assets/") || e.textContent)) found.push("script " + src);
		if (name === "img" && !src.startsWith("/api/chat/avatar/")) found.push("img " + src);
		if (name === "link" && !/^\/(assets\/|favicon)/.test(href) && !(e.rel === "canonical" && href === location.pathname)) found.push("link " + href);
		if (name === "a" && !/^(\/|#|https:\/\/(appeals|proofs)\.example\.org\/|\?)/.test(href)) {
			if (!/^(https?:|mailto:|tel:|sms:)/.test(href)) found.push("a " + href);
			const rel = (e.getAttribute("rel") ?? "").split(" ");
			if (e.closest(".r")) for (const want of ["nofollow", "noreferrer"]) if (!rel.includes(want)) found.push("a without " + want + ": " + href);
		}
	}
	return found;
})()`

// harmless fails the test for each thing that could run or fetch something.
func (tb *tab) harmless() {
	tb.t.Helper()
	for _, s := range eval[[]string](tb, strange) {
		tb.t.Errorf("%s: %s", tb.path(), s)
	}
}

// showsNames: harmful names are there, letter by letter, without the controls by which a name would
// reverse the writing direction, and nothing reverses what follows it.
func showsNames(tb *tab, s sight) {
	names := eval[[]string](tb, `[...document.querySelectorAll("article h3")].map(e => e.textContent)`)
	for _, want := range []string{harmfulName, "gnp.exe odwrócony", invisibleName, similarName} {
		if !slices.Contains(names, want) {
			tb.t.Errorf("%s: %q is not among the names %q", s.path, want, names)
		}
	}
	loose := eval[int](tb, `[...document.querySelectorAll("h3")].filter(e => e.querySelector("bdi") === null && getComputedStyle(e).unicodeBidi !== "isolate").length`)
	if loose > 0 {
		tb.t.Errorf("%s: %d names are not isolated", s.path, loose)
	}
}
