package reason

import (
	stdhtml "html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"example.org/registry/events"
)

func linkTo(address, text string) string {
	return `<a href="` + address + `" rel="nofollow noopener noreferrer">` + text + "</a>"
}

// TestMapping is the mapping of a reason (events/CONTRACT.md#mapping), by example.
func TestMapping(t *testing.T) {
	a, b := linkTo("https://a.pl", "https://a.pl"), linkTo("https://b.pl", "https://b.pl")
	for reason, want := range map[string]string{
		"":                               "",
		"**x** <b>y</b>":                 "<p><strong>x</strong> &lt;b&gt;y&lt;/b&gt;</p>\n",
		"a\nb":                           "<p>a\nb</p>\n",
		"a  \nb\\\nc":                    "<p>a<br>\nb<br>\nc</p>\n",
		"~~x~~ _y_ `z`":                  "<p><del>x</del> <em>y</em> <code>z</code></p>\n",
		"a & b < c > d \"e\"":            "<p>a &amp; b &lt; c &gt; d &quot;e&quot;</p>\n",
		"&lt;b&gt; &amp;amp; &oacute;":   "<p>&lt;b&gt; &amp;amp; ó</p>\n",
		"| a |\n|---|\n| b |":            "<p>| a |\n|---|\n| b |</p>\n",
		"www.a.pl a@b.pl ftp://a.pl":     "<p>www.a.pl a@b.pl ftp://a.pl</p>\n",
		"<script>alert(1)</script>":      "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n",
		"<div>\nx\n</div>":               "<p>&lt;div&gt;\nx\n&lt;/div&gt;</p>\n",
		"<!-- x -->":                     "<p>&lt;!-- x --&gt;</p>\n",
		"<a@b.pl> <https://a.pl>":        "<p>&lt;a@b.pl&gt; &lt;" + a + "&gt;</p>\n",
		"[Blik]: 500600700":              "<p>[Blik]: 500600700</p>\n",
		"```Kamil: daj 500 zł\nok```":    "<pre><code>Kamil: daj 500 zł\nok```\n</code></pre>\n",
		"snake_case 2~3 z 8~9 rat":       "<p>snake_case 2~3 z 8~9 rat</p>\n",
		"~x~ ~~~y~~~":                    "<p>~x~ ~~~y~~~</p>\n",
		"12. maja\n13. maja":             "<ol start=\"12\">\n<li>maja</li>\n<li>maja</li>\n</ol>\n",
		"# H\n\n- a\n- b\n\n> q":         "<h1>H</h1>\n<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<blockquote>\n<p>q</p>\n</blockquote>\n",
		strings.Repeat("> ", 18) + "a":   strings.Repeat("<blockquote>\n", 16) + "<p>&gt; &gt; a</p>\n" + strings.Repeat("</blockquote>\n", 16),
		"e&#x301;&#x302;&#x303;&#x202e;": "<p>e\u0301\u0302</p>\n",
		"x\u0301\u0302![\u0303](a)":      "<p>x\u0301\u0302 (a)</p>\n",

		"[x](https://a.pl \"t\")":               "<p>x (" + a + ")</p>\n",
		"[**x**](HTTP://a.pl)":                  "<p><strong>x</strong> (" + linkTo("HTTP://a.pl", "HTTP://a.pl") + ")</p>\n",
		"[y](mailto:a@b.pl)":                    "<p>y (" + linkTo("mailto:a@b.pl", "mailto:a@b.pl") + ")</p>\n",
		"[](https://a.pl)![](https://a.pl)":     "<p>(" + a + ")(" + a + ")</p>\n",
		"![*alt*](https://a.pl)":                "<p><em>alt</em> (" + a + ")</p>\n",
		"[x](javascript:alert(1))":              "<p>x (javascript:alert(1))</p>\n",
		"[x](&#106;avascript&colon;alert(1))":   "<p>x (javascript:alert(1))</p>\n",
		"[y](/z) [z](//a.pl) [w](http://) []()": "<p>y (/z) z (//a.pl) w (http://) </p>\n",
		"[a.pl](https://b.pl)":                  "<p>a.pl (" + b + ")</p>\n",
		"[https://a.pl](https://b.pl)":          "<p>" + a + " (" + b + ")</p>\n",
		"[https://a.pl](https://a.pl)":          "<p>" + a + "</p>\n",
		"[![x](https://a.pl)](https://b.pl)":    "<p>x (" + a + ") (" + b + ")</p>\n",
		"https://a.pl/&#x202e;y":                "<p>" + linkTo("https://a.pl/y", "https://a.pl/y") + "</p>\n",
		"*https://a.pl* **https://b.pl**":       "<p><em>" + a + "</em> <strong>" + b + "</strong></p>\n",
		"xhttps://a.pl https:// http://.pl":     "<p>xhttps://a.pl https:// http://.pl</p>\n",
		"https://a.pl?a=1&copy=2":               "<p>" + linkTo("https://a.pl?a=1&amp;copy=2", "https://a.pl?a=1&amp;copy=2") + "</p>\n",
		"Https://żółw.pl/ść":                    "<p>" + linkTo("Https://%C5%BC%C3%B3%C5%82w.pl/%C5%9B%C4%87", "Https://żółw.pl/ść") + "</p>\n",
	} {
		if got := NewRenderer().HTML(reason); got != want {
			t.Errorf("%q\n got %q\nwant %q", reason, got, want)
		}
	}
}

// TestEndOfAddress: what stands behind an address without markup is not a part of it, also as a
// character reference.
func TestEndOfAddress(t *testing.T) {
	r := NewRenderer()
	for _, address := range []string{"https://a.pl/x", "http://a.pl/(x)", "https://a.pl/[x]{y}_z", "https://a.pl/~x*y?a=1&b=2"} {
		for _, end := range []string{"", " y", "\ny", "<y", ">y", `"y`, "|y", "||", "`y", ")", "]y", "}", ".", ",", ":", ";", "!", "?", "'", "*", "_", "~", "~~", ").", ".)", "…?!\u00a0y",
			"&gt;y", "&quot;y", "&#39;", "&nbsp;y", "&#10;y", "&verbar;y", "&#x60;y", "&rpar;", "&period;", "&lt;y"} {
			want := address
			if strings.HasPrefix(end, "…") {
				want += "…"
			}
			out := r.HTML("(x " + address + end)
			all := anchors(out)
			if len(all) != 1 || all[0].text != want {
				t.Errorf("%q has the links %q in %q", address+end, all, out)
			}
		}
	}
}

// TestText is what a search sees of a reason (httpapi/CONTRACT.md#search).
func TestText(t *testing.T) {
	for reason, want := range map[string]string{
		"o*szu*st **a**b":                           "oszust ab",
		"**a** `b`\nc  \nd\\\ne":                    "a b c d e",
		"# H\n\n- a\n- b\n\n> q\n\n```\nc <d>\n```": "H a b q c <d>",
		"&lt;b&gt; [x](https://a.pl) <p>y</p>":      "<b> x (https://a.pl) <p>y</p>",
	} {
		if got := strings.Join(strings.Fields(Text(NewRenderer().HTML(reason))), " "); got != want {
			t.Errorf("%q is seen as %q, want %q", reason, got, want)
		}
	}
}

// TestPromises holds generated Markdown to promises 1 to 3.
func TestPromises(t *testing.T) {
	r := NewRenderer()
	rapid.Check(t, func(t *rapid.T) {
		for range 30 { // what goes wrong is rare
			checkPromises(t, r, someMarkdown().Draw(t, "reason"))
		}
	})
}

// FuzzReason holds any text to promises 1 to 3.
func FuzzReason(f *testing.F) {
	for _, s := range append(markers(), typed()...) {
		f.Add(s)
	}
	r := NewRenderer()
	f.Fuzz(func(t *testing.T, s string) {
		if s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", ""); len(s) <= 300 {
			checkPromises(t, r, s)
		}
	})
}

// TestParagraph: no character hides markup from the quick way.
func TestParagraph(t *testing.T) {
	r := NewRenderer()
	for c := range rune(0x400) {
		for _, around := range []string{"ac", "a#c", "a#", "#a", "a ## c", "a# ", "a##c##d", "a: #b", "ab://#c", "https:#c", "1#c", "ż #.c"} {
			checkPromises(t, r, strings.ReplaceAll(around, "#", string(c)))
		}
	}
}

type failer interface{ Fatalf(string, ...any) }

func checkPromises(t failer, r *Renderer, reason string) {
	out := r.HTML(reason)
	if want := r.renderMarkdown(Plain(reason), maxHTML); out != want {
		t.Fatalf("%q gave %q, want %q as of any reason", reason, out, want)
	}
	if shown := lettersOf(Text(out)); !explains(Plain(reason), shown) {
		t.Fatalf("%q\nshows %q\nas %q", reason, string(shown), out)
	}
	if wrong := foreignMarkup(out); wrong != "" {
		t.Fatalf("%q gave %s in %q", reason, wrong, out)
	}
	for _, l := range anchors(out) {
		if !aLink.MatchString(l.address) || string(util.URLEscape([]byte(l.text), false)) != l.address {
			t.Fatalf("%q: %q leads to %q", reason, l.text, l.address)
		}
	}
	if marksOn(out) > maxMarks || strings.ContainsFunc(out, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }) {
		t.Fatalf("%q shows %q", reason, out)
	}
}

func lettersOf(s string) (letters []rune) {
	for _, r := range s {
		if unicode.In(r, unicode.L, unicode.N) {
			letters = append(letters, r)
		}
	}
	return letters
}

func marksOn(s string) (most int) {
	run := 0
	for _, r := range s {
		if run++; !unicode.In(r, unicode.Mn, unicode.Me) {
			run = 0
		}
		most = max(most, run)
	}
	return most
}

var (
	sourceReference = regexp.MustCompile(`^&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z0-9]+);`)
	aDestination    = regexp.MustCompile(`^\]\(\s*(<(?:\\.|[^>\n])*>|[^\s]*)`)
	aTitle          = regexp.MustCompile(`^\s+("(?:\\.|[^"])*"|'(?:\\.|[^'])*'|\((?:\\.|[^)])*\))\s*\)`)
	aNumber         = regexp.MustCompile(`^[0-9]{1,9}[.)](?:\s|$)`)
	lineStart       = regexp.MustCompile(`(?:^|\n)(?:[\s>*+-]|[0-9]{1,9}[.)](?:\s|$))*$`)
)

// explains reports whether source shows the letters and digits shown, in order: all of its own, but
// for numbers of lists, titles of links, and addresses that are the text of their link. A character
// reference is its character, or is shown as it is (in code).
func explains(source string, shown []rune) bool {
	reached := make([]map[int]bool, len(source)+1) // by position in source: how many of shown are explained
	reach := func(at, n int) {
		if reached[at] == nil {
			reached[at] = map[int]bool{}
		}
		reached[at][n] = true
	}
	reach(0, 0)
	for at := range source {
		for n := range reached[at] {
			rest := source[at:]
			r, size := utf8.DecodeRuneInString(rest)
			if !unicode.In(r, unicode.L, unicode.N) {
				reach(at+size, n)
			} else if n < len(shown) && shown[n] == r {
				reach(at+size, n+1)
			}
			if number := aNumber.FindString(rest); number != "" && lineStart.MatchString(source[:at]) {
				reach(at+len(number), n)
			}
			if title := aTitle.FindString(rest); title != "" && strings.Contains(source[:at], "](") {
				reach(at+len(title), n)
			}
			if ref := sourceReference.FindString(rest); ref != "" {
				of := lettersOf(stdhtml.UnescapeString(ref))
				if n+len(of) <= len(shown) && slices.Equal(of, shown[n:n+len(of)]) {
					reach(at+len(ref), n+len(of))
				}
			}
			if found := aDestination.FindStringSubmatch(rest); found != nil {
				of := lettersOf(resolve([]byte(strings.TrimRight(found[1], ")"))))
				if n >= len(of) && slices.Equal(of, shown[n-len(of):n]) {
					reach(at+len(found[0]), n)
				}
			}
		}
	}
	return reached[len(source)][len(shown)]
}

// allowed are the elements of HTML, with their attributes.
func allowed(element string) (attributes string, ok bool) {
	switch element {
	case "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "strong", "em", "del", "code":
		return "", true
	case "a":
		return "href rel", true
	default:
		return "", false
	}
}

// foreignMarkup returns what is not allowed, or what is not nested, in HTML.
func foreignMarkup(out string) string {
	var open []string
	z := html.NewTokenizer(strings.NewReader(out))
	for z.Next() != html.ErrorToken {
		tok := z.Token()
		switch tok.Type {
		case html.TextToken:
			continue
		case html.StartTagToken:
			if tok.Data != "br" && tok.Data != "hr" {
				open = append(open, tok.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != tok.Data {
				return "a wrong </" + tok.Data + ">"
			}
			open = open[:len(open)-1]
		default:
			return tok.String()
		}

		want, ok := allowed(tok.Data)
		var names []string
		for _, a := range tok.Attr {
			names = append(names, a.Key)
		}
		isNumbered := tok.Data == "ol" && strings.Join(names, " ") == "start" && strings.Trim(tok.Attr[0].Val, "0123456789") == ""
		if !ok || tok.Type == html.StartTagToken && strings.Join(names, " ") != want && !isNumbered {
			return tok.String()
		}
	}
	if len(open) > 0 {
		return "an open <" + open[0] + ">"
	}
	return ""
}

type anchor struct{ text, address string }

var (
	anyAnchor = regexp.MustCompile(`(?s)<a href="([^"]*)" rel="nofollow noopener noreferrer">(.*?)</a>`)
	aLink     = regexp.MustCompile(`^(?i:https?://[a-z0-9%]|mailto:[^/])`)
)

func anchors(out string) (all []anchor) {
	for _, m := range anyAnchor.FindAllStringSubmatch(out, -1) {
		all = append(all, anchor{stdhtml.UnescapeString(m[2]), stdhtml.UnescapeString(m[1])})
	}
	return all
}

// maxHTML bounds the HTML of any reason in bytes: of one that is shown as it is, &amp; for each byte.
const maxHTML = len("&amp;")*events.MaxReason + extraHTML

// TestBoundOfHTML renders what grows most.
func TestBoundOfHTML(t *testing.T) {
	r := NewRenderer()
	for _, s := range []string{"http://a.b ", `"`, "[\"](http://a.b/&&&&) ", "http://a.b/&&&&&&&&&&&&&&&&&&&&&& ", "- a\n", "**a** "} {
		out := r.HTML(strings.Repeat(s, events.MaxReason/len(s)))
		if n := len(out); n > maxHTML {
			t.Errorf("%q: %d bytes of HTML, at most %d", s, n, maxHTML)
		}
	}
	if out := r.HTML(strings.Repeat("http://a.b ", events.MaxReason/11)); strings.Contains(out, "<a") {
		t.Error("too many links are not shown as text")
	}

	// NFC makes six bytes of the three of U+0958.
	growing := strings.Repeat(`"`, 16_000) + strings.Repeat("\u0958", 1_333)
	if n, most := len(r.HTML(growing)), maxGrowth*len(growing)+extraHTML; n > most {
		t.Errorf("%d bytes of HTML, at most %d", n, most)
	}
}

// Names lose marks beyond two on a letter, and bidirectional controls.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"Zażółć": "Zażółć", "Z\u0307\u0301\u0302\u0303x": "Ż\u0301\u0302x", "a\u202eb\u2066": "ab", "1\ufe0f\u20e3": "1\ufe0f\u20e3", "x\u0301": "x\u0301", "e\u0301": "é",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for s, want := range map[string]bool{"a": true, "😀": true, ".": true, "": false, " \u200b\u3164\u2800\ufe0f\u0301": false} {
		if IsVisible(s) != want {
			t.Errorf("%q: visible %v", s, !want)
		}
	}
}
