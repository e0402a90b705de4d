package site

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
	markdown "example.org/registry/readmodel/reason"
	"example.org/registry/readmodel/reason/reasontest"
)

// What the renderer would let through if it were broken does not reach a page.
func TestSanitise(t *testing.T) {
	policy := newPolicy()
	for reason, want := range map[string]string{
		"<p>a <strong>b</strong></p>\n":                        "<p>a <strong>b</strong></p>\n",
		"<h1>a</h1>":                                           `<p class="h">a</p>`,
		"<p><script>alert(1)</script>x</p>":                    "<p>x</p>",
		`<p onclick="x()" style="color:red" id="q">x</p>`:      "<p>x</p>",
		`<a href="javascript:alert(1)">x</a>`:                  "x",
		`<a href="JaVaScRiPt&#58;alert(1)">x</a>`:              "x",
		`<a href="data:text/html,x">x</a>`:                     "x",
		`<a href="/zgłoś">x</a>`:                               "x",
		`<a href="https://e.org/?a=1&amp;b" title="t">x</a>`:   `<a href="https://e.org/?a=1&amp;b" rel="nofollow noopener noreferrer">x</a>`,
		`<a href="mailto:a@b.c">x</a>`:                         `<a href="mailto:a@b.c" rel="nofollow noopener noreferrer">x</a>`,
		`<img src="https://e.org/x.png" onerror="x()">`:        "",
		"<svg><script>x</script></svg><iframe src=x></iframe>": "",
		"<form><input><button>x</button></form>":               "x",
		"</article></main><p>x":                                "<p>x</p>",
		"<p><em>x</p></em>":                                    "<p><em>x</em></p>",
		"<ul><li>a</li></ul>":                                  "<ul><li>a</li></ul>",
	} {
		if got := string(sanitise(policy, reason)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", reason, got, want)
		}
	}
}

// TestPagesShowWhatTheAPISends holds generated reasons to one list of elements: of what the renderer
// writes, a page changes nothing but headings, which would be in its outline.
func TestPagesShowWhatTheAPISends(t *testing.T) {
	policy, r := newPolicy(), markdown.NewRenderer()
	heading := regexp.MustCompile(`<(/?)h[1-6]>`)
	rapid.Check(t, func(t *rapid.T) {
		html := r.HTML(reasontest.Markdown().Draw(t, "reason"))
		want := heading.ReplaceAllStringFunc(html, func(tag string) string {
			return map[bool]string{true: "</p>", false: `<p class="h">`}[tag[1] == '/']
		})
		if got := string(sanitise(policy, html)); got != want {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
		if got, want := shownText(html), strings.Fields(markdown.Text(html)); strings.Join(strings.Fields(got), "") != strings.Join(want, "") {
			t.Fatalf("shows %q, want %q", got, want)
		}
	})
}

func FuzzSanitise(f *testing.F) {
	for _, s := range longReasons() {
		f.Add(s[:200])
	}
	f.Add(`<p>a<b>&lt;script&gt;</p><a href="https://e.org"><a href=x>y</a><table><td>`)
	f.Add(strings.Repeat("<blockquote>", 30) + "x" + strings.Repeat("</blockquote>", 29))
	policy := newPolicy()
	f.Fuzz(func(t *testing.T, reason string) {
		clean := string(sanitise(policy, reason))
		harmless(t, clean)
		if got, want := strings.Fields(seen(t, clean)), strings.Fields(shownText(policy.Sanitize(strings.ReplaceAll(reason, "\x00", "")))); strings.Join(got, "") != strings.Join(want, "") {
			t.Errorf("text %q, want %q", got, want)
		}
	})
}

// harmless fails the test unless every element and attribute of the HTML is one that a reason may
// have.
func harmless(t *testing.T, part string) {
	t.Helper()
	wellFormed(t, part)
	for _, name := range []string{"script", "style", "img", "svg", "iframe", "form", "input", "object", "base", "meta", "article"} {
		if strings.Contains(part, "<"+name) {
			t.Errorf("<%s> in %q", name, part)
		}
	}
	for _, a := range elements(t, part, "a") {
		href := strings.ToLower(attr(a, "href"))
		if !strings.HasPrefix(href, "http://") && !strings.HasPrefix(href, "https://") && !strings.HasPrefix(href, "http:") && !strings.HasPrefix(href, "https:") && !strings.HasPrefix(href, "mailto:") {
			t.Errorf("link to %q", href)
		}
	}
}

// What somebody is accused of is the bold words that the reason begins with, else its beginning.
func TestGist(t *testing.T) {
	for reason, want := range map[string]string{
		"<p><strong>Nitro za darmo: kod QR.</strong> Wysyła kod.</p>": "Nitro za darmo: kod QR",
		"<p>Bierze <strong>zaliczki</strong> i znika.</p>":            "Bierze zaliczki i znika",
		"": "", "<p><strong>" + strings.Repeat("długi ", 60) + "</strong></p>": "długi długi długi długi długi długi długi długi długi długi…",
	} {
		if got := gist(reason); got != want {
			t.Errorf("%q: %q, want %q", reason, got, want)
		}
	}
}

// TestShownNames: a name is seen, turns no text around and paints over no line, on every page that
// has it.
func TestShownNames(t *testing.T) {
	for name, want := range map[string]string{
		"\u200b\u3164":                    "(nazwa bez widocznych znaków)",
		"\u2800\u2800":                    "(nazwa bez widocznych znaków)",
		"Jan \u202eylimE":                 "Jan ylimE",
		"Z\u0301\u0302\u0303\u0304x":      "Ź\u0302\u0303x",
		"Z\u0323\u0302\u0303\u0304\u0305": "Ẓ\u0302\u0303",
	} {
		w := newWorld(t, full(), person(events.Scammers, "e", "9", name, "Powód.", true, events.Proofs{}, 1))
		if page := w.entry(t, events.Scammers, "e"); !strings.Contains(page, "<bdi>"+want+"</bdi>") {
			t.Errorf("%q is not shown as %q", name, want)
		}
	}
	// Nor does a page that somebody reads in a terminal obey anybody: not in a name, a reason or a title.
	const orders = "\x1b]0;x\a\x1b[31m\u009b31m\x7f\u00a0"
	w := newWorld(t, full(), person(events.Scammers, "e", "9", "Jan "+orders, "Powód "+orders, true, events.Proofs{}, 1))
	if page := w.entry(t, events.Scammers, "e"); strings.ContainsAny(page, "\x1b\a\u009b\x7f") || !strings.Contains(page, "31m \u00a0") {
		t.Errorf("a page with control characters: %q", page)
	}
	_, b := markDifferences("Jan", "J\u202ea\u0301\u0302\u0303n")
	if got := string(b); strings.ContainsAny(got, "\u202e\u0303") || !strings.Contains(got, "U+202E") {
		t.Errorf("differences show %q", got)
	}
}
