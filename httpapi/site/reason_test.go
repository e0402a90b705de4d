package site

import (
	"strings"
	"testing"
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
		`<a href="https://e.org/?a=1&amp;b" title="t">x</a>`:   `<a href="https://e.org/?a=1&amp;b" rel="nofollow noreferrer">x</a>`,
		`<a href="mailto:a@b.c">x</a>`:                         `<a href="mailto:a@b.c" rel="nofollow noreferrer">x</a>`,
		`<img src="https://e.org/x.png" onerror="x()">`:        "",
		"<svg><script>x</script></svg><iframe src=x></iframe>": "",
		"<form><input><button>x</button></form>":               "x",
		"</article></main><p>x":                                "<p>x</p>",
		"<p><em>x</p></em>":                                    "<p><em>x</em></p>",
		"<ul><li>a</li></ul>":                                  "<ul><li>a</li></ul>",
	} {
		got, _, more := sanitise(policy, reason).part(place{}, 10000)
		if got != want || more {
			t.Errorf("%s\ngot  %s\nwant %s", reason, got, want)
		}
	}
}

// A cut keeps words whole where it can, closes what is open and opens it again in the next part.
func TestParts(t *testing.T) {
	whole := sanitise(newPolicy(), "<p>raz dwa <em>trzy cztery</em></p><p>pięć</p>")
	var parts []string
	for at, more := (place{}), true; more; {
		var part string
		part, at, more = whole.part(at, 33)
		parts = append(parts, part)
	}
	want := []string{"<p>raz dwa <em>trzy </em></p>", "<p><em>cztery</em></p><p>pię</p>", "<p>ć</p>"}
	if strings.Join(parts, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", parts, want)
	}
}

func FuzzSanitise(f *testing.F) {
	for _, s := range longReasons() {
		f.Add(s[:200])
	}
	f.Add(`<p>a<b>&lt;script&gt;</p><a href="https://e.org"><a href=x>y</a><table><td>`)
	f.Add(strings.Repeat("<blockquote>", 30) + "x" + strings.Repeat("</blockquote>", 29))
	policy := newPolicy()
	f.Fuzz(func(t *testing.T, reason string) {
		clean := sanitise(policy, reason)
		all, steps := "", 0
		for at, more := (place{}), true; more; steps++ {
			before := at
			var part string
			part, at, more = clean.part(at, 4096)
			if len(part) > 4096 || steps > 0 && at == before && more {
				t.Fatalf("part of %d bytes at %v", len(part), before)
			}
			harmless(t, part)
			all += seen(t, part)
		}
		whole, _, _ := clean.part(place{}, 1<<30)
		if len(whole) != clean.size {
			t.Errorf("%d bytes, said to be %d", len(whole), clean.size)
		}
		if got, want := strings.Join(strings.Fields(all), ""), strings.Join(strings.Fields(seen(t, whole)), ""); got != want {
			t.Errorf("parts %q, whole %q", got, want)
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
