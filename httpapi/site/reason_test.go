package site

import (
	"strings"
	"testing"

	"example.org/registry/events"
	markdown "example.org/registry/readmodel/reason"
)

// A page has only harmless elements, addresses and attributes, whatever a reason is, and shows its whole text.
func FuzzReason(f *testing.F) {
	for _, s := range []string{"# a\n\n###### b", `<p>a<b><script>x</script><a href="x">y`, "[x](javascript:alert(1)) [y](data:text/html,x)", strings.Repeat("> ", 30) + "x", "\x00", "![x](https://e.org/x.png)"} {
		f.Add(s)
	}
	r := markdown.NewRenderer()
	f.Fuzz(func(t *testing.T, reason string) {
		html := r.HTML(reason)
		page := string(withoutHeadings(html))
		harmless(t, page)
		if got, want := strings.Fields(seen(t, page)), strings.Fields(markdown.Text(html)); strings.Join(got, "") != strings.Join(want, "") {
			t.Errorf("text %q, want %q", got, want)
		}
	})
}

// harmless fails the test unless every element and attribute of the HTML is one that a reason may have.
func harmless(t *testing.T, part string) {
	t.Helper()
	wellFormed(t, part)
	for _, name := range []string{"script", "style", "img", "svg", "iframe", "form", "input", "object", "base", "meta", "article", "h1", "h6"} {
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
		if got := makeGist(reason); got != want {
			t.Errorf("%q: %q, want %q", reason, got, want)
		}
	}
}

// TestShownNames: a name is seen, turns no text around and paints over no line, on every page that has it.
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
}
