package paste

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	one = "99000060127957749488"
	two = "998800112233445566"
)

func testReader() *Reader {
	return NewReader(Config{BaseURL: "https://rejestr.example", IsWord: func(s string) bool { return s == "rycerz" }})
}

// seen writes down what is sought of a text: ids with #, numbers with !, names; ? before what only
// may be meant and w before words of the language.
func seen(p *Paste) string {
	var all []string
	for _, s := range p.Sought {
		mark := []string{"", "?", "w"}[s.How]
		switch {
		case s.Short:
			continue
		case s.ID != "":
			all = append(all, mark+"#"+s.ID)
		case s.Number != "":
			all = append(all, mark+"!"+s.Number)
		default:
			all = append(all, mark+strings.Join(s.Names, "="))
		}
	}
	return strings.Join(all, " | ")
}

// Texts, and what is sought of them among other things; a text that begins with - is not sought.
func TestRead(t *testing.T) {
	rd := testReader()
	for _, c := range []struct {
		text string
		kind Kind
		want []string
	}{
		{"żabcia2013", Plain, []string{"żabcia2013"}},
		{"@żabcia2013#1234", Plain, []string{"żabcia2013"}},
		{"nick: żabcia2013", Plain, []string{"nick: żabcia2013=żabcia2013"}},
		{"to jest rycerz", Plain, []string{"to jest rycerz", "?to jest", "?jest rycerz", "wrycerz"}},
		{"rycerz", Plain, []string{"rycerz", "-wrycerz"}},
		{"a b c d e f", Plain, []string{"?a b c d e", "?b c d e f", "?f"}},
		{one, Plain, []string{"#" + one, one}},
		{one + " " + two, Plain, []string{"#" + one, "#" + two}},
		{"9900 0060 1279 5774 9488", Plain, []string{"#" + one, "?#9900006012795774"}},
		{"9900006012 7957749488", Plain, []string{"#" + one}},
		{"990000601\n2795774\n9488", Telephone, []string{"#" + one}},
		{"(9900) 0060/1279_5774'9488", Plain, []string{"#" + one}},
		{"٩٩٠٠٠٠٦٠١٢٧٩٥٧٧٤٩٤٨٨", Plain, []string{"#" + one}},
		{"99OOOO60127957749488", Plain, []string{"?#" + one}},
		{"x" + one, Plain, []string{"?#" + one}},
		{"id" + one, Plain, []string{"#" + one}},
		{"nr 2, 9900 0060 1279 5774 94", Plain, []string{"?#990000601279577494", "#2990000601279577494"}},
		{"600700800", Telephone, []string{"600700800"}},
		{"<@" + one + ">", Plain, []string{"#" + one}},
		{"&lt;@!" + one + "&gt;", Plain, []string{"#" + one}},
		{"%3C%40" + one + "%3E", Plain, []string{"#" + one}},
		{"<@&" + one + ">", Place, []string{"-#" + one, "-?#" + one}},
		{"<t:1700000000:R>", Place, []string{"-1700000000"}},
		{"<t:" + one + ":R>", Place, []string{"?#" + one, "-#" + one}},
		{"</kup:" + one + ">", Place, []string{"-#" + one, "-?#" + one}},
		{"<:pepe:" + one + ">", Plain, []string{"-#" + one, "?pepe"}},
		{"https://discord.com/channels/" + two + "/" + one, Place, []string{"#" + two, "-#" + one, "-?#" + one}},
		{"https://discord.com/users/" + one, Plain, []string{"#" + one}},
		{"https://discord.com/users/" + one + "/../" + two, Web, []string{"?#" + one, "?#" + two, "-#" + one}},
		{"https://discordapp.pl/users/" + one, Web, []string{"?#" + one, "-#" + one}},
		{"nocny.ryś — wczoraj o 21:37", Plain, []string{"nocny.ryś"}},
		{"[21:37] nocny.ryś: siema", Plain, []string{"?nocny.ryś"}},
		{"Mega Szczupak — Yesterday at 9:37 PM", Plain, []string{"Mega Szczupak"}},
		{"oszukał mnie „Mega Szczupak” dziś", Plain, []string{"Mega Szczupak"}},
		{"a, b / c | d", Plain, []string{"a", "b", "c", "d"}},
		{"kuba.pl:oszust", Web, []string{"?kuba.pl"}},
		{"kuba.pl#0 " + one, Web, []string{"#" + one, "kuba.pl"}},
		{"https://rejestr.example/wpis/scammers/demo-1", Web, []string{"!demo-1"}},
		{"https://evil.example/wpis/legit/demo-1", Web, []string{"?!demo-1"}},
		{"https://rejestr.example/?search=nocny.ry%C5%9B&id=5", Plain, []string{"nocny.ryś"}},
		{"zgłoszenie Z-101248", Plain, []string{"?!Z-101248"}},
		{"123456789012345678901", Number, []string{"123456789012345678901"}},
	} {
		p := rd.Read(c.text, "")
		all := " | " + seen(&p) + " | "
		for _, want := range c.want {
			not, isNot := strings.CutPrefix(want, "-")
			if strings.Contains(all, " | "+not+" | ") == isNot {
				t.Errorf("%q: %s: want %q", c.text, seen(&p), want)
			}
		}
		if got := p.Kind(func(s Stretch) bool { return s.Kind > Figure }); got != c.kind {
			t.Errorf("%q: kind %d, want %d", c.text, got, c.kind)
		}
	}
}

// Both fields are one text.
func TestFieldsAreOneText(t *testing.T) {
	for _, c := range [][2]string{{"maja1997", "nocny.ryś"}, {"", "nocny.ryś"}, {"12345", "nocny.ryś"}} {
		if p := testReader().Read(c[0], c[1]); !strings.Contains(" | "+seen(&p)+" | ", " | nocny.ryś | ") {
			t.Errorf("%q: %s", c, seen(&p))
		}
	}
}

// What is beyond the bounds is said, before normalization and after it.
func TestOmitted(t *testing.T) {
	ids := ""
	for i := range MaxIDs + 1 {
		ids += fmt.Sprintf("<@%d>", i)
	}
	words := ""
	for i := range 149 {
		words += string(rune('a'+i*i%23)) + "."
	}
	for text, want := range map[string]bool{
		ids: true, ids[4:]: false, strings.Repeat("ż", MaxText): false, strings.Repeat("ż", MaxText+1): true,
		strings.Repeat("ﷺ", 17): true, words: true,
	} {
		if p := testReader().Read(text, ""); p.Omitted != want {
			t.Errorf("%.20q: omitted %v", text, p.Omitted)
		}
	}
}

// FuzzRead holds whatever is pasted against the promises of the package.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "a, b", "<@" + one + ">", "\u200ba\u200b ﷺ &lt;x&gt; %41", "ąa\u0328 " + two + " [21:37]", "https://discord.com/users/" + one + "/../1", "1 2 3 4 5", "„x” (y) @z", "e\u0301\u200d"} {
		f.Add(s, "1")
	}
	rd := testReader()
	f.Fuzz(func(t *testing.T, text, id string) {
		if !utf8.ValidString(text) || !utf8.ValidString(id) {
			t.Skip()
		}
		p := rd.Read(text, id)
		at := 0
		for _, s := range p.Stretches {
			if s.From != at || s.To <= s.From {
				t.Fatalf("%q: the stretches %+v do not cover it", p.Text, p.Stretches)
			}
			at = s.To
		}
		if at != len(p.Text) {
			t.Fatalf("%q: the stretches end at %d", p.Text, at)
		}
		lookups := 0
		for _, s := range p.Sought {
			lookups += max(1, len(s.Names))
			for _, in := range s.Spans {
				if in.From > in.To || in.To > len(p.Text) {
					t.Errorf("%q: %+v", p.Text, s)
				}
			}
		}
		if lookups > MaxLookups {
			t.Errorf("%q: %d lookups", p.Text, lookups)
		}
	})
}
