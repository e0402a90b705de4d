package reason

import (
	stdhtml "html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
	"example.org/registry/readmodel/reason/reasontest"
)

const rel = ` rel="nofollow noopener noreferrer">`

// TestMapping is the mapping of a reason (events/CONTRACT.md#mapping), by example.
func TestMapping(t *testing.T) {
	link := func(address, text string) string { return `<a href="` + address + `"` + rel + text + "</a>" }
	for reason, want := range map[string]string{
		"":                               "",
		"**x** <b>y</b>":                 "<p><strong>x</strong> y</p>\n",
		"a\nb":                           "<p>a\nb</p>\n",
		"a  \nb\\\nc":                    "<p>a<br>\nb<br>\nc</p>\n",
		"~~x~~ _y_ `z`":                  "<p><del>x</del> <em>y</em> <code>z</code></p>\n",
		"a & b < c > d \"e\"":            "<p>a &amp; b &lt; c &gt; d &quot;e&quot;</p>\n",
		"&lt;b&gt; &amp;amp; &oacute;":   "<p>&lt;b&gt; &amp;amp; ó</p>\n",
		"| a |\n|---|\n| b |":            "<p>| a |\n|---|\n| b |</p>\n",
		"www.a.pl a@b.pl ftp://a.pl":     "<p>www.a.pl a@b.pl ftp://a.pl</p>\n",
		"<p>Wziął 500</p><br>I zniknął":  "<p>Wziął 500\n\nI zniknął</p>\n",
		"<script>alert(1)</script>":      "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n",
		"<B>x</B> <b class=y>":           "<p>&lt;B&gt;x&lt;/B&gt; &lt;b class=y&gt;</p>\n",
		"<!-- x -->":                     "<p>&lt;!-- x --&gt;</p>\n",
		"<Kamil>: daj\n<Ja>: ok":         "<p>&lt;Kamil&gt;: daj\n&lt;Ja&gt;: ok</p>\n",
		"[Blik]: 500600700":              "<p>[Blik]: 500600700</p>\n",
		"```Kamil: daj 500 zł\nok```":    "<pre><code>Kamil: daj 500 zł\nok```\n</code></pre>\n",
		"1*2*3 snake_case o**szu**st":    "<p>1*2*3 snake_case o**szu**st</p>\n",
		"2~3 z 8~9 rat ~x~ ~~~y~~~":      "<p>2~3 z 8~9 rat ~x~ ~~~y~~~</p>\n",
		"12. maja":                       "<p>12. maja</p>\n",
		"01. maja":                       "<p>01. maja</p>\n",
		"1. a\n2. b\n4. c":               "<ol>\n<li>a</li>\n<li>b\n4. c</li>\n</ol>\n",
		"1) a\n1) b\n2) c":               "<ol>\n<li>a</li>\n<li>b\n2) c</li>\n</ol>\n",
		"# H\n\n- a\n- b\n\n> q":         "<h1>H</h1>\n<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<blockquote>\n<p>q</p>\n</blockquote>\n",
		strings.Repeat("> ", 18) + "a":   strings.Repeat("<blockquote>\n", 16) + "<p>&gt; &gt; a</p>\n" + strings.Repeat("</blockquote>\n", 16),
		"e&#x301;&#x302;&#x303;&#x202e;": "<p>e\u0301\u0302</p>\n",

		"[x](https://a.pl \"t>t\")":                          "<p>" + link("https://a.pl", "x") + " (t&gt;t)</p>\n",
		"[x](HTTP://a.pl) [y](mailto:a@b.pl)":                "<p>" + link("HTTP://a.pl", "x") + " " + link("mailto:a@b.pl", "y") + "</p>\n",
		"[](https://a.pl) ![](https://a.pl)":                 "<p>" + link("https://a.pl", "https://a.pl") + " " + link("https://a.pl", "https://a.pl") + "</p>\n",
		"![*alt* &amp; <b>](http://a.pl/1)":                  "<p>" + link("http://a.pl/1", "<em>alt</em> &amp; ") + "</p>\n",
		"[**x**](javascript:alert(1))":                       "<p><strong>x</strong> javascript:alert(1)</p>\n",
		"[x](&#106;avascript&colon;alert(1))":                "<p>x javascript:alert(1)</p>\n",
		"[y](/z) [z](//a.pl) [w](http://) []()":              "<p>y /z z //a.pl w http:// </p>\n",
		"[zrzut.png](https://a.pl/1)":                        "<p>" + link("https://a.pl/1", "zrzut.png") + "</p>\n",
		"[bank24.pl](https://evil.example)":                  "<p>bank24.pl https://evil.example</p>\n",
		"[https://a.pl](https://evil.example)":               "<p>" + link("https://a.pl", "https://a.pl") + " https://evil.example</p>\n",
		"[a.pl](https://a.pl/) [https://a.pl](https://a.pl)": "<p>" + link("https://a.pl/", "a.pl") + " " + link("https://a.pl", "https://a.pl") + "</p>\n",
		"[![x](https://a.pl/1)](https://b.pl)":               "<p>" + link("https://a.pl/1", "x") + " https://b.pl</p>\n",
		"[x](https://me@a.pl)":                               "<p>x https://me@a.pl</p>\n",

		"https://a.pl/x&#x202e;y":                    "<p>" + link("https://a.pl/xy", "https://a.pl/xy") + "</p>\n",
		"(see https://a.pl/b?c=d&e.)":                "<p>(see " + link("https://a.pl/b?c=d&amp;e", "https://a.pl/b?c=d&amp;e") + ".)</p>\n",
		"„Https://a.pl/ść”, *https://a.pl/b*":        "<p>„" + link("Https://a.pl/%C5%9B%C4%87", "Https://a.pl/ść") + "”, <em>" + link("https://a.pl/b", "https://a.pl/b") + "</em></p>\n",
		"https://a.pl/(b)_c*d*|e)":                   "<p>" + link("https://a.pl/(b)_c*d*%7Ce", "https://a.pl/(b)_c*d*|e") + ")</p>\n",
		"https://żółw.pl:80 https://1.2.3.4/x":       "<p>" + link("https://%C5%BC%C3%B3%C5%82w.pl:80", "https://żółw.pl:80") + " " + link("https://1.2.3.4/x", "https://1.2.3.4/x") + "</p>\n",
		"https://a.pl–b.pl/ https://a.pl∕b.pl/":      "<p>https://a.pl–b.pl/ https://a.pl∕b.pl/</p>\n",
		"https://аpple.com https://a.pl@evil.pl":     "<p>https://аpple.com https://a.pl@evil.pl</p>\n",
		"xhttps://a.pl http://a.pl: https://":        "<p>xhttps://a.pl " + link("http://a.pl", "http://a.pl") + ": https://</p>\n",
		"https://a.pl<b>.evil</b> https://b.pl<br>c": "<p>https://a.pl.evil " + link("https://b.pl", "https://b.pl") + "\nc</p>\n",
		"<https://a.pl> <a@b.pl> <irc://a.pl>":       "<p>" + link("https://a.pl", "https://a.pl") + " " + link("mailto:a@b.pl", "a@b.pl") + " &lt;irc://a.pl&gt;</p>\n",
	} {
		if got := NewRenderer().HTML(reason); got != want {
			t.Errorf("%q\n got %q\nwant %q", reason, got, want)
		}
	}
}

// TestText is what a search sees of a reason (httpapi/CONTRACT.md#search).
func TestText(t *testing.T) {
	for reason, want := range map[string]string{
		"o*szu*st **a**b":                           "o*szu*st **a**b",
		"**a** `b`\nc  \nd\\\ne":                    "a b c d e",
		"# H\n\n- a\n- b\n\n> q\n\n```\nc <d>\n```": "H a b q c <d>",
		"&lt;b&gt; [x](https://a.pl) <p>y</p>":      "<b> x y",
	} {
		if got := strings.Join(strings.Fields(Text(NewRenderer().HTML(reason))), " "); got != want {
			t.Errorf("%q is seen as %q, want %q", reason, got, want)
		}
	}
}

// TestPromises holds generated Markdown to promises 1, 2 and 4.
func TestPromises(t *testing.T) {
	r := NewRenderer()
	rapid.Check(t, func(t *rapid.T) {
		for range 30 { // what goes wrong is rare
			checkPromises(t, r, reasontest.Markdown().Draw(t, "reason"))
		}
	})
}

// FuzzReason holds any text to promises 1, 2 and 4.
func FuzzReason(f *testing.F) {
	for _, s := range append(reasontest.Markers(), reasontest.Typed()...) {
		f.Add(s)
	}
	r := NewRenderer()
	f.Fuzz(func(t *testing.T, s string) {
		if s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", ""); len(s) <= 300 {
			checkPromises(t, r, s)
		}
	})
}

type failer interface{ Fatalf(string, ...any) }

func checkPromises(t failer, r *Renderer, reason string) {
	out := r.HTML(reason)
	if len(out) > MaxHTML {
		t.Fatalf("%q gave %d bytes", reason, len(out))
	}
	if shown := lettersOf(Text(out)); !explains(Plain(reason), shown) {
		t.Fatalf("%q\nshows %q\nas %q", reason, string(shown), out)
	}
	if wrong := foreignMarkup(out); wrong != "" {
		t.Fatalf("%q gave %s in %q", reason, wrong, out)
	}
	for _, l := range anchors(out) {
		if why := misleads(l.text, l.address); why != "" {
			t.Fatalf("%q: %q leads to %q: %s", reason, l.text, l.address, why)
		}
	}
	if marksOn(out) > MaxMarks || strings.ContainsFunc(out, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }) {
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
	aTag         = regexp.MustCompile(`^</?(br|p|hr|ul|ol|li|div|blockquote|b|i|u|s|em|strong|del|code|span) ?/?>`)
	aReference   = regexp.MustCompile(`^&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z0-9]+);`)
	aDestination = regexp.MustCompile(`^\]\(\s*(<(?:\\.|[^>\n])*>|[^\s]*)`)
	lineMarkers  = regexp.MustCompile(`^(?:[\s>*+-]|[0-9]{1,9}[.)](?:\s|$))*`)
	aNumber      = regexp.MustCompile(`[0-9]+`)
)

// explains reports whether source shows the letters and digits shown, in order: all of its own, but
// for numbers of lists, dropped tags and addresses of links with a text of their own. A character
// reference is its character, or is shown as it is (in code).
func explains(source string, shown []rune) bool {
	markers := listNumbers(source)
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
			if length := markers[at]; length > 0 {
				reach(at+length, n)
			}
			if tag := aTag.FindString(rest); tag != "" {
				reach(at+len(tag), n)
			}
			if ref := aReference.FindString(rest); ref != "" {
				of := lettersOf(stdhtml.UnescapeString(ref))
				if n+len(of) <= len(shown) && slices.Equal(of, shown[n:n+len(of)]) {
					reach(at+len(ref), n+len(of))
				}
			}
			if address := aDestination.FindString(rest); address != "" && IsVisible(source[strings.LastIndexByte(source[:at], '[')+1:at]) {
				for end := range address + " " { // a bracket may end it
					if end >= len("](") {
						reach(at+end, n)
					}
				}
			}
		}
	}
	return reached[len(source)][len(shown)]
}

// listNumbers returns where the numbers of ordered lists may stand in source, and their lengths: 1,
// and any number whose predecessor began a line before.
func listNumbers(source string) map[int]int {
	at, begun := map[int]int{}, map[string]bool{"0": true}
	offset := 0
	for line := range strings.SplitAfterSeq(source, "\n") {
		prefix := lineMarkers.FindString(line)
		for _, m := range aNumber.FindAllStringIndex(prefix, -1) {
			number := prefix[m[0]:m[1]]
			before := "0"
			for b := range begun {
				if next(b) == number {
					before = b
				}
			}
			if next(before) == number {
				at[offset+m[0]] = len(number)
			}
			begun[number] = true
		}
		offset += len(line)
	}
	return at
}

// next returns the decimal number after n.
func next(n string) string {
	digits := []byte("0" + n)
	i := len(digits) - 1
	for ; digits[i] == '9'; i-- {
		digits[i] = '0'
	}
	digits[i]++
	return strings.TrimLeft(string(digits), "0")
}

// foreignMarkup returns what Elements does not have, or what is not nested, in HTML.
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
		attributes, ok := Elements()[tok.Data]
		if !ok || tok.Type == html.StartTagToken && len(tok.Attr) != len(attributes) {
			return tok.String()
		}
		for i, a := range tok.Attr {
			if a.Key != attributes[i] || a.Key == "rel" && a.Val != "nofollow noopener noreferrer" || a.Key == "href" && !isLink(a.Val) && !strings.Contains(a.Val, "%") {
				return tok.String()
			}
		}
	}
	if len(open) > 0 {
		return "an open <" + open[0] + ">"
	}
	return ""
}

type anchor struct{ text, address string }

var anyAnchor = regexp.MustCompile(`(?s)<a href="([^"]*)"[^>]*>(.*?)</a>`)

func anchors(out string) (all []anchor) {
	for _, m := range anyAnchor.FindAllStringSubmatch(out, -1) {
		all = append(all, anchor{Text(m[2]), stdhtml.UnescapeString(m[1])})
	}
	return all
}

var anyHost = regexp.MustCompile(`^(?:[\pL\d-]+\.)+(?:pl|com|example|org|net|ru)(?:[/?#:].*)?$`)

// misleads returns why a link with this text must not lead to this address, or "".
func misleads(text, address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Scheme != "mailto" && u.Host == "" {
		return "no plain address"
	}
	switch {
	case !IsVisible(text):
		return "nothing to see"
	case strings.Contains(text, "://"):
		if decoded, err := url.PathUnescape(address); err != nil || strings.Trim(decoded, after+"/") != strings.Trim(text, after+"/") && stdhtml.UnescapeString(decoded) != text && address != text {
			return "another address"
		}
	case anyHost.MatchString(lookalike.Visible(text)):
		if host, _, _ := strings.Cut(lookalike.Visible(text), "/"); !strings.HasPrefix(host, u.Host) {
			return "another host"
		}
	}
	return ""
}

// TestLinksLeadWhereTheyRead draws links whose texts are addresses.
func TestLinksLeadWhereTheyRead(t *testing.T) {
	host := rapid.SampledFrom([]string{"bank.pl", "Bank.pl", "evil.example", "bank.pl.evil.example", "żółw.pl", "a.pl", "аpple.com", "ｂank.pl", "bank\u200b.pl", "bank.pl:443", "me@bank.pl", "1.2.3.4"})
	address := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "http://", "https://", "HTTPS://", "mailto:", "//", "javascript:"}).Draw(t, "scheme") + host.Draw(t, "host") +
			rapid.SampledFrom([]string{"", "/", "/x", "/?a=1&b=2", "/ść", ".", "%2e"}).Draw(t, "path")
	})
	r := NewRenderer()
	linked := 0
	rapid.Check(t, func(t *rapid.T) {
		text, to := address.Draw(t, "text"), address.Draw(t, "address")
		if rapid.Bool().Draw(t, "own") {
			to = text
		}
		form := rapid.SampledFrom([]string{"[T](A)", "![T](A)", "[**T**](A)", "[ T ](<A>)", "[`T`](A \"t\")", "[T.](A)", "[\\T](A)", "[![T](A)](B)", "T A", "<T>", "[T]: A"}).Draw(t, "form")
		reason := strings.NewReplacer("T", text, "A", to, "B", text).Replace(form)
		checkPromises(t, r, reason)
		linked += len(anchors(r.HTML(reason)))
	})
	if linked < 30 {
		t.Error("only", linked, "links")
	}
}

// TestAddressesAreWhole draws runs of characters behind a scheme: they are links as a whole, or not
// at all.
func TestAddressesAreWhole(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"a.pl", "bank.example", "/", "?", "#", "&", "=", ".", ",", ":", ";", "!", "'", `"`, "*", "_", "~", "~~", "|", "–", "∕", "ś", "а", "1", "%", "%20", "@", "\\", "^", "`", "”", "…", "-", "🎁", "\u200b", "http://a.pl"})
	r := NewRenderer()
	whole := 0
	rapid.Check(t, func(t *rapid.T) {
		run := rapid.SampledFrom([]string{"http://", "https://", "Https://a.pl/", "http://bank.example"}).Draw(t, "scheme") + strings.Join(rapid.SliceOfN(pieces, 1, 8).Draw(t, "run"), "")
		out := r.HTML("x " + run + " y")
		for _, l := range anchors(out) {
			if want := string(resolve([]byte(strings.TrimRight(run, after)))); l.text != want {
				t.Fatalf("%q became a link of %q", run, l.text)
			}
			whole++
		}
	})
	if whole < 20 {
		t.Error("only", whole, "links")
	}
}

// TestBoundOfHTML renders what grows most.
func TestBoundOfHTML(t *testing.T) {
	r := NewRenderer()
	for _, s := range []string{"http://a.b ", `"`, "[\"](http://a.b/&&&&) ", "http://a.b/&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&& ", "http://a.b/śśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśśś ", "- a\n", "**a** "} {
		out := r.HTML(strings.Repeat(s, events.MaxReason/len(s)))
		if n := len(out); n > MaxHTML {
			t.Errorf("%q: %d bytes of HTML, at most %d", s, n, MaxHTML)
		}
	}
	if out := r.HTML(strings.Repeat("http://a.b ", events.MaxReason/11)); strings.Contains(out, "<a") {
		t.Error("too many links are not shown as text")
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
