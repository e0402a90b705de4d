package readmodel

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel/btree"
)

const rel = ` rel="nofollow noopener noreferrer">`

// TestMarkdown is the mapping of a reason (events/CONTRACT.md#mapping), and what a search sees of
// it (httpapi/CONTRACT.md#search).
func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ reason, html, visible string }{
		{"", "", ""},
		{"**x** <b>y</b>", "<p><strong>x</strong> y</p>\n", "x y"},
		{"a\nb", "<p>a\nb</p>\n", "a\nb"},
		{"a  \nb\\\nc", "<p>a<br>\nb<br>\nc</p>\n", "a \nb \nc"},
		{"~~x~~ _y_ `z`", "<p><del>x</del> <em>y</em> <code>z</code></p>\n", "x y z"},
		{"o**szu**st", "<p>o<strong>szu</strong>st</p>\n", "oszust"},
		{"<div>x</div>", "", ""},
		{"a <!-- x --> b", "<p>a  b</p>\n", "a  b"},
		{"<script>alert(1)</script>", "", ""},
		{"x <script>alert(1)</script>", "<p>x alert(1)</p>\n", "x alert(1)"},
		{"a & b < c > d \"e\"", "<p>a &amp; b &lt; c &gt; d &quot;e&quot;</p>\n", `a & b < c > d "e"`},
		{"&lt;b&gt; &amp;amp;", "<p>&lt;b&gt; &amp;amp;</p>\n", "<b> &amp;"},
		{"![alt *text* &amp; <b>](http://x.pl/a.png \"t\")", "<p>alt text &amp; </p>\n", "alt text &"},
		{"![`\\*` `&amp;`](y)", "<p>\\* &amp;amp;</p>\n", `\* &amp;`},
		{"[a ![b](c)](https://x.pl)", `<p><a href="https://x.pl"` + rel + "a b</a></p>\n", "a b"},
		{"[x](https://a.pl \"t>t\")", `<p><a href="https://a.pl" title="t&gt;t"` + rel + "x</a></p>\n", "x"},
		{"[x](HTTP://a.pl)", `<p><a href="HTTP://a.pl"` + rel + "x</a></p>\n", "x"},
		{"[x](mailto:a@b.pl)", `<p><a href="mailto:a@b.pl"` + rel + "x</a></p>\n", "x"},
		{"[**x**](javascript:alert(1))", "<p><strong>x</strong></p>\n", "x"},
		{"[x](java&#115;cript:alert(1))", "<p>x</p>\n", "x"},
		{"[x](&#106;avascript&colon;alert(1))", "<p>x</p>\n", "x"},
		{"[x](data:text/html,y) [y](/z) [z](//a.pl) [w](ftp://a.pl)", "<p>x y z w</p>\n", "x y z w"},
		{"see https://a.pl/b?c=d&e.", `<p>see <a href="https://a.pl/b?c=d&amp;e"` + rel + "https://a.pl/b?c=d&amp;e</a>.</p>\n", "see https://a.pl/b?c=d&e."},
		{"[x](http://) [y](https:///z) <http://>", "<p>x y http://</p>\n", "x y http://"},
		{"[xx][a] [yy][a]\n\n[a]: http://a.pl/1", `<p><a href="http://a.pl/1"` + rel + `xx</a> <a href="http://a.pl/1"` + rel + "yy</a></p>\n", "xx yy"},
		{"[a] [a] [a]\n\n[a]: http://a.pl/123", `<p><a href="http://a.pl/123"` + rel + `a</a> <a href="http://a.pl/123"` + rel + "a</a> a</p>\n", "a a a"},
		{strings.Repeat("> ", 18) + "a", strings.Repeat("<blockquote>\n", 16) + "<p>&gt; &gt; a</p>\n" + strings.Repeat("</blockquote>\n", 16), "> > a"},
		{"> " + strings.Repeat("- ", 16) + "a", "<blockquote>\n" + strings.Repeat("<ul>\n<li>\n", 14) + "<ul>\n<li>- a</li>\n</ul>\n" + strings.Repeat("</li>\n</ul>\n", 14) + "</blockquote>\n", "- a"},
		{strings.Repeat(strings.Repeat(">", 16)+"\n\n", 60), "<p>" + strings.Repeat(strings.Repeat("&gt;", 16)+"\n\n", 60) + "</p>\n", strings.TrimSpace(strings.Repeat(strings.Repeat(">", 16)+" ", 60))},
		{"www.a.pl a@b.pl ftp://a.pl", "<p>www.a.pl a@b.pl ftp://a.pl</p>\n", "www.a.pl a@b.pl ftp://a.pl"},
		{"<https://a.pl> <a@b.pl> <irc://a.pl>", `<p><a href="https://a.pl"` + rel + `https://a.pl</a> <a href="mailto:a@b.pl"` + rel + "a@b.pl</a> irc://a.pl</p>\n", "https://a.pl a@b.pl irc://a.pl"},
		{"# H\n\n- a\n- b\n\n> q\n\n```\nc <d>\n```", "<h1>H</h1>\n<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<blockquote>\n<p>q</p>\n</blockquote>\n<pre><code>c &lt;d&gt;\n</code></pre>\n", "H a b q c <d>"},
		{"| a |\n|---|\n| b |", "<p>| a |\n|---|\n| b |</p>\n", "| a |\n|---|\n| b |"},
	} {
		got := newMarkdown().render(c.reason)
		if got != c.html {
			t.Errorf("%q\n got %q\nwant %q", c.reason, got, c.html)
		}
		if v := visibleText(got); fold(v) != fold(c.visible) {
			t.Errorf("%q is seen as %q, want %q", c.reason, v, c.visible)
		}
	}
}

// TestHostileMarkdown: whatever is written, no script, no handler, no scheme but three.
func TestHostileMarkdown(t *testing.T) {
	t.Parallel()
	size := 20_000
	if eventstest.RaceDetector {
		size = 2000
	}
	var inputs []string
	for _, s := range pieces() {
		inputs = append(inputs, strings.Repeat(s, size/len(s)))
	}
	inputs = append(inputs, "<img src=x onerror=alert(1)>", "[x](javascript&#58;y)", "<svg/onload=x>", "[x](\x01javascript:y)", "<javascript:x>", "[x](JaVaScRiPt:y)", "[x]: javascript:y\n\n[x]")
	m := newMarkdown()
	for _, in := range inputs {
		checkHarmless(t, in, m.render(in))
	}
}

func checkHarmless(t interface{ Errorf(string, ...any) }, in, out string) {
	for rest := out; ; {
		_, after, found := strings.Cut(rest, "<")
		if !found {
			return
		}
		var tag string
		tag, rest, _ = strings.Cut(after, ">")
		if name, attributes, has := strings.Cut(tag, " "); has {
			href := name == "a" && (strings.HasPrefix(attributes, `href="http`) || strings.HasPrefix(attributes, `href="mailto:`) || strings.HasPrefix(strings.ToLower(attributes), `href="http`))
			start := name == "ol" && strings.HasPrefix(attributes, `start="`)
			if !href && !start && name != "code" {
				t.Errorf("%.80q gave the tag <%.80s>", in, tag)
			}
		} else if !slices.Contains(strings.Fields("p strong em del code pre a ul ol li blockquote br hr h1 h2 h3 h4 h5 h6"), strings.TrimPrefix(name, "/")) {
			t.Errorf("%.80q gave the tag <%.80s>", in, tag)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"**x** <b>y</b>", "[x](javascript:y)", "![a](b)", "<https://a.pl>", "- a\n\n> b"} {
		f.Add(s)
	}
	m := newMarkdown()
	f.Fuzz(func(t *testing.T, s string) {
		out := m.render(strings.ToValidUTF8(s, ""))
		checkHarmless(t, s, out)
		visibleText(out)
	})
}

func TestFold(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"abc 1", "abc 1"}, {"ABC", "abc"}, {"a  b\t\nc", "a b c"}, {" a ", " a "}, {"ŁÓDŹ", "łódź"},
		{"Straße", "strasse"}, {"STRASSE", "strasse"}, {"ﬁ", "fi"}, {"ＡＢ", "ab"}, {"²", "2"}, {"İ", "i̇"}, {"ΣΑΣ", "σασ"}, {"ς", "σ"},
		{"e\u0301", "é"}, {"a\u00a0\u2003b", "a b"}, {"𝐀", "a"}, {"\u1680x", " x"}, {"a\vb", "a b"},
	} {
		if got := fold(c.in); got != c.want {
			t.Errorf("Fold(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// TestFoldParts: folding leaves no white space but single spaces, whatever it is given, so that the
// newline between the fields of a row is in no search.
func TestFoldParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := fold(rapid.String().Draw(t, "text"))
		if strings.Contains(s, "\n") || strings.Contains(s, "  ") {
			t.Fatalf("%q", s)
		}
	})
}

// TestPolishOrder is the contract's alphabetical order: ą after a, ł after l, ż after ź, case
// ignored, punctuation counted, digits as characters; ties by _id.
func TestPolishOrder(t *testing.T) {
	want := []string{"", " x", "_x", "-x", "!x", "😀", "🙂", "🤣", "€", "₿", "1", "10", "2", "a", "a b", "a-b", "aa", "ab", "az", "ą", "ąa", "b", "c", "ć", "d", "e", "ę", "l", "lz", "ł", "łą", "m", "n", "ń", "o", "ó", "p", "s", "ś", "z", "zz", "ź", "ż", "żaba"}
	col := collate.New(language.Polish, collate.IgnoreCase)
	for i := range len(want) - 1 {
		a, b := rowNamed(want[i], "1"), rowNamed(want[i+1], "0")
		if !before(a, b) {
			t.Errorf("%q does not come before %q (collator: %d)", want[i], want[i+1], col.CompareString(want[i], want[i+1]))
		}
	}
	if !before(rowNamed("ŻABA", "1"), rowNamed("żaba", "2")) || !before(rowNamed("żaba", "1"), rowNamed("ŻABA", "2")) {
		t.Error("case decides, not the id")
	}
}

// TestPolishSymbols: symbols that are younger than the collator's tables stand with their elders, and
// the same characters written differently tie.
func TestPolishSymbols(t *testing.T) {
	if !before(rowNamed("a🙂b", "9"), rowNamed("a🤣b", "1")) || !before(rowNamed("₺", "9"), rowNamed("₿", "1")) || !before(rowNamed("₿", "9"), rowNamed("0", "1")) {
		t.Error("young symbols are out of order")
	}
	for symbol, letters := range map[string]string{"Sklep™": "skleptm", "ⓜaja": "maja", "№ 1": "no 1", "🅬x": "mrx"} {
		if a, b := rowNamed(symbol, "1"), rowNamed(letters, "1"); a.collation() != b.collation() {
			t.Errorf("%q does not tie with %q, whose letters it has", symbol, letters)
		}
	}
	if a, b := rowNamed("a\u0301\u0328", "1"), rowNamed("\u0105\u0301", "1"); a.collation() != b.collation() {
		t.Error("canonically equal names do not tie")
	}
}

// before is the order az of two rows.
func before(a, b *Row) bool {
	return cmp.Or(cmp.Compare(byName.key(a, 0), byName.key(b, 0)), byName.tie(a, b)) < 0
}

func rowNamed(name, id string) *Row {
	return NewRenderer().Render(1, events.Entry{List: "scammers", EntryID: id, ChatID: "1", Name: name}).row
}

// versioned are events of every kind of state, for the tests of versions.
func versioned() []events.Data {
	var all []events.Data
	for i, name := range []string{"Łukasz", "ＡＢ", "żaba-1", "straße", `"\`, "😀"} {
		all = append(all, events.Entry{List: "legit", EntryID: fmt.Sprint(i), ChatID: name, Name: name, Verified: true, ReportID: "R",
			Reason: name + " **a** https://a.pl\n\n- x\n- [y](z)\n", ReportedAt: time.Unix(int64(i), 0)})
	}
	return append(all,
		eventstest.Complete(events.Entry{List: "scammers", EntryID: "e", Proofs: events.Proofs{Private: true}}),
		events.Views{List: "servers", EntryID: "e", Views: 7},
		events.Donation{DonationID: "d", Status: "pending", Amount: "1.50", Currency: "PLN", CreatedAt: time.Unix(1, 0), UpdatedAt: time.Unix(2, 0)})
}

// TestRenderVersion fails when the row of an unchanged event changes: then RenderVersion has to
// change too, or stores would keep rows, and caches answers, that a replay does not give
// (events/CHANGING.md#versions).
func TestRenderVersion(t *testing.T) {
	r, h := NewRenderer(), sha256.New()
	for _, d := range append(versioned(), events.Entry{List: "scammers", EntryID: "letters", ChatID: "1", Name: "ᎠᎡ ⓜ™",
		Reason: strings.Repeat("> ", 20) + "a\n\n[a]: http://a.pl/\n\n" + strings.Repeat("[a] *b* [c] ", 3000) + "[x](http://)"}) {
		if rec := r.Render(1, d); rec.row != nil {
			h.Write(appendRow(nil, rec.row))
		}
	}
	const want = "5 4a2be456627e605e"
	if got := fmt.Sprint(RenderVersion, " ", hex.EncodeToString(h.Sum(nil)[:8])); got != want {
		t.Errorf("rows are %q, were %q: raise RenderVersion and write the new value here", got, want)
	}
}

// TestProjectionVersion fails when the canonical state or the digest of an unchanged event changes:
// then ProjectionVersion has to change too, or the digest of a store would not be that of a replay. It
// fails when the schemas of events change: then a store may have rejected, or kept in part, what a
// replay accepts (events/CHANGING.md#versions).
func TestProjectionVersion(t *testing.T) {
	r, h := NewRenderer(), sha256.New()
	for _, d := range versioned() {
		rec := r.Render(1, d)
		digest := rec.Digest()
		h.Write(rec.state)
		h.Write(digest[:])
	}
	const want = "3 170a38f1c117a6d6"
	if got := fmt.Sprint(ProjectionVersion, " ", hex.EncodeToString(h.Sum(nil)[:8])); got != want {
		t.Errorf("states and digests are %q, were %q: leave a new field out of the state where it is empty, or raise "+
			"ProjectionVersion and write the new value here", got, want)
	}
	const accepted = "3 aaae01c2b0562102"
	if got := fmt.Sprint(ProjectionVersion, " ", acceptedEvents(t)); got != accepted {
		t.Errorf("schemas of events are %q, were %q: raise ProjectionVersion if other events are accepted now, or more of "+
			"them is kept, and write the new value here", got, accepted)
	}
}

// TestDamagedValue: a stored value that was cut or changed is an error or a record, never a panic.
func TestDamagedValue(t *testing.T) {
	r := NewRenderer()
	e := events.Entry{List: "scammers", EntryID: "e", ChatID: "\"1", Name: "n", Reason: "r", ReportID: "R", ReportedAt: time.Unix(1, 0)}
	rec := r.Render(7, e)
	value := rec.AppendValue(nil)
	for i := range value {
		if _, err := r.DecodeRecord(rec.Subject, value[:i], false); err == nil && i < len(value)-len(rec.row.blob) {
			t.Errorf("%d of %d bytes were accepted", i, len(value))
		}
		for bit := range 8 {
			bad := slices.Clone(value)
			bad[i] ^= 1 << bit
			if got, err := r.DecodeRecord(rec.Subject, bad, false); err == nil {
				_, _, _ = got.row.JSON(), got.row.text(), got.row.chatID()
				if class := byTime.item(got.row, 0).Class; class >= btree.NumClasses {
					t.Errorf("byte %d: class %d, which no tree counts", i, class)
				}
			}
			_, _ = r.DecodeRecord(rec.Subject, bad, true)
		}
	}
}
