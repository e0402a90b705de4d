package paste

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/lookalike"
)

const (
	one = "99000060127957749488"
	two = "998800112233445566"
)

func testReader() *Reader { return NewReader(Config{BaseURL: "https://rejestr.example"}) }

// The literal ids of a text, and what the name beside one may be.
func TestLiterals(t *testing.T) {
	rd := testReader()
	for _, c := range []struct {
		text   string
		ids    string
		beside string
	}{
		{one, one, "only"},
		{"9900 0060 1279 5774 9488", one, "only"},
		{"9900  0060 1279 5774 9488", "", ""},
		{"9900 0060 1279 5774 9488 1", "", ""},
		{"9900 0060 1279 577", "990000601279577", "only"},
		{"9900 0060 1279 5774 9488, 5", one, "5"},
		{"x" + one, "", ""},
		{one + "²", "", ""},
		{"_" + one, one, ""},
		{"<@" + one + "><@!" + two + ">", one + " " + two, ""},
		{"<" + one + ">", "", ""},
		{"discord.com/users/" + one, one, "only"},
		{"https://ptb.DISCORD.com/users/" + one + "/", one, "only"},
		{"https://discord.com:443/users/" + one, "", ""},
		{"https://a@discord.com/users/" + one, "", ""},
		{"https://discord.com/users/" + one + "#x", "", ""},
		{"https://discord.com/users/" + one + "/x", "", ""},
		{"https://zly-discord.com/users/" + one, "", ""},
		{"kuba.pl/" + one, "", ""},
		{"ID: " + one + " | ID:https://discord.com/users/" + one, one, "only"},
		{"nick id dc: " + one, one, "nick id dc:=nick id dc=nick id=nick"},
		{"Ala (" + one + ")", one, "Ala"},
		{"Ala - (" + one + ")", one, "Ala -"},
		{"(ID " + one + ") Ala", one, "Ala"},
		{one + "(Ala)", one, "Ala"},
		{one + " - Ala -", one, "- Ala -=Ala -"},
		{one + "Ala", "", ""},
		{one + " Ala " + one, one, "Ala " + one + "=Ala"},
		{one + ", (Ala) " + one, one, "(Ala) " + one + "=(Ala)"},
		{one + " (Ala)" + one, one, "(Ala)" + one + "=Ala"},
		{one + "Ala " + one, one, one + "Ala"},
		{"id :https://discord.com/users/" + one, one, "only"},
	} {
		p := rd.Read(c.text, "")
		got := strings.Join(p.Beside, "=")
		if p.Only {
			got = "only"
		}
		if strings.Join(p.IDs, " ") != c.ids || got != c.beside && !subset(c.beside, p.Beside) {
			t.Errorf("%q: ids %v, beside %q, want %q", c.text, p.IDs, got, c.beside)
		}
	}
}

// subset reports whether names, joined by =, are all there, and nothing else is.
func subset(names string, of []string) bool {
	for _, name := range of {
		if !slices.Contains(strings.Split(names, "="), name) {
			return false
		}
	}
	return names != "" && len(of) > 0
}

// The kinds of what no list has.
func TestKinds(t *testing.T) {
	for text, want := range map[string]Kind{
		"600700800": Telephone, "+48 600 700 800": Telephone, "600 700 800, 600 700 801": Telephone, "PL61109010140000071219812874": Account, "61 1090 1014 0000 0712 1981 2874": Account,
		"4111 1111 1111 1111": Card, "ja@example.org": Mail, "https://example.org": Web, "sklep.онлайн": Web, "hxxps://a.b": Web, "192.168.1.1": Web,
		"steamcommunity.com/id/x": Profile, "discord.gg/abc": Invitation, "https://discord.com/invite/abc": Invitation, "https://discord.com/channels/1/2/3": Message,
		"https://discord.com/channels/@me/2": Place, "<#1>": Place, "@here": Place, "x #ogólny": Place, "21:37": Time, "24.12.2024": Time,
		"123456": Short, "123456789012345678901": Number, "nocny.ryś": Plain, one: Plain, one + ", 600 700 800": Telephone, "50 zł": Plain, "maja1997": Plain,
	} {
		p := testReader().Read(text, "")
		if got := p.Kind(); got != want {
			t.Errorf("%q: kind %d, want %d: %v", text, got, want, p.Unchecked)
		}
	}
}

// FuzzRead holds whatever is pasted against the promises of the package.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "a, b", "<@" + one + ">", "\u200ba\u200b ﷺ &lt;x&gt; %41", "ąa\u0328 " + two + " [21:37]", "https://discord.com/users/" + one + "/../1", "1 2 3 4 5", "(ID " + one + ") Ala", "e\u0301\u200d", "| x |", "￼", "<:a:" + one + ">"} {
		f.Add(s, "")
		f.Add("Ala", s)
	}
	rd := testReader()
	f.Fuzz(func(t *testing.T, text, id string) {
		text, id = strings.ToValidUTF8(text, ""), strings.ToValidUTF8(id, "")
		p := rd.Read(text, id)
		for _, s := range p.Unchecked {
			if s.From >= s.To || s.To > len(p.Text) || !utf8.ValidString(p.Text[s.From:s.To]) {
				t.Fatalf("%q: %v", p.Text, s)
			}
		}
		for _, id := range slices.Concat(p.IDs, p.Accuse, p.Maybe) {
			if !isRun(id) || !Digits(id) {
				t.Fatalf("%q: id %q", p.Text, id)
			}
		}
		if (p.Only || len(p.Beside) > 0) && len(p.IDs) != 1 || p.Alone && len(p.IDs) != 1 {
			t.Fatalf("%q: %+v", p.Text, p)
		}
		if p.Whole[0].Forms[0] != lookalike.Literal(p.Text) {
			t.Fatalf("%q is not looked up as it is", p.Text)
		}
		for _, s := range []string{strings.TrimSpace(text), strings.TrimSpace(id)} {
			if (utf8.RuneCountInString(s) > MaxText || utf8.RuneCountInString(norm.NFKC.String(s)) > MaxText) && !p.Omitted {
				t.Fatalf("%d code points, and nothing is omitted", utf8.RuneCountInString(s))
			}
		}
		if len(p.Runs)+len(p.IDs)+len(p.Maybe) > MaxLookups {
			t.Fatalf("%d look-ups", len(p.Runs))
		}
	})
}
