package paste

import (
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	one = "99000060127957749488"
	two = "998800112233445566"
)

// pastes are texts as people paste them, with their readings after the first, which is the text itself unless the API
// takes it for an id: ids with #, names without.
func pastes() []struct {
	text string
	kind Kind
	want string // joined by |; one that begins with = has no first reading of the text itself
} {
	type row = struct {
		text string
		kind Kind
		want string
	}
	return []row{
		// Names.
		{"żabcia2013", Plain, ""},
		{"@żabcia2013", Plain, "żabcia2013"},
		{"żabcia2013#1234", Plain, "żabcia2013"},
		{"żabcia2013 #1234", Plain, "żabcia2013"},
		{"żabcia2013#0", Plain, "żabcia2013"},
		{"żabcia#12345", Plain, ""},
		{"@żabcia2013#1234.", Plain, "żabcia2013"},
		{"żabcia2013,", Plain, "żabcia2013"},
		{"żabcia2013.", Plain, "żabcia2013"},
		{"żabcia2013!!!", Plain, "żabcia2013"},
		{"żabcia2013?", Plain, "żabcia2013"},
		{"żabcia2013:", Plain, "żabcia2013"},
		{`"żabcia2013"`, Plain, "żabcia2013"},
		{"„żabcia2013”", Plain, "żabcia2013"},
		{"«żabcia2013»", Plain, "żabcia2013"},
		{"'żabcia2013'", Plain, "żabcia2013"},
		{"`żabcia2013`", Plain, "żabcia2013"},
		{"**żabcia2013**", Plain, "żabcia2013"},
		{"(żabcia2013)", Plain, "żabcia2013"},
		{"[żabcia2013]", Plain, "żabcia2013"},
		{"> żabcia2013", Plain, "żabcia2013"},
		{"- żabcia2013", Plain, "żabcia2013"},
		{"żabcia2013 😀", Plain, "żabcia2013"},
		{"❤️żabcia2013❤️", Plain, "żabcia2013"},
		{"👩‍👧 żabcia2013", Plain, "żabcia2013"},
		{"<:pepe:998800112233445566> żabcia2013", Plain, "żabcia2013"},
		{"\u200bżabcia2013\u200e", Plain, "żabcia2013"},
		{"\u2068@żabcia2013\u2069", Plain, "żabcia2013"},
		{"_żabcia_", Plain, ""},
		{"nick: żabcia2013", Plain, "żabcia2013"},
		{"Nick = żabcia2013", Plain, "żabcia2013"},
		{"nick żabcia2013", Plain, "żabcia2013"},
		{"użytkownik @żabcia2013", Plain, "żabcia2013"},
		{"serwer Darmowe Nitro", Plain, "Darmowe Nitro"},
		{"Kwaśny Joystick", Plain, ""},
		{"Kwaśny  Joystick.", Plain, "Kwaśny Joystick"},
		{"żabcia2013, maja1997", Plain, "żabcia2013|maja1997"},
		{"żabcia2013 | maja1997", Plain, "żabcia2013|maja1997"},
		{"😀", Plain, ""},
		{"@", Plain, ""},
		{"!!!", Plain, ""},

		// Ids.
		{one, Plain, "#" + one},
		{"9900 0060 1279 5774 9488", Plain, "#" + one},
		{"9900\u00a00060\u202f1279 5774 9488", Plain, "#" + one},
		{"(9900 0060 1279 5774 9488)", Plain, "#" + one},
		{"ID: " + one, Plain, "#" + one},
		{"ID:" + one, Plain, "#" + one},
		{"id " + one, Plain, "#" + one},
		{"id" + one, Plain, "#" + one},
		{"ID: 9900 0060 1279 5774 9488.", Plain, "#" + one},
		{"User ID: " + two, Plain, "#" + two},
		{one + ",", Plain, "#" + one},
		{`"` + one + `"`, Plain, "#" + one},
		{"９９８８００１１２２３３４４５５６６", Plain, "#" + two},
		{"9988\u200b00112233445566", Plain, "#" + two},
		{one + " żabcia2013", Plain, "#" + one + "|żabcia2013"},
		{"żabcia2013 " + one, Plain, "#" + one + "|żabcia2013"},
		{"żabcia2013 (" + one + ")", Plain, "#" + one + "|żabcia2013"},
		{"żabcia2013 9900 0060 1279 5774 9488", Plain, "#" + one + "|żabcia2013"},
		{"agent 007 9900 0060 1279 5774 9488", Plain, "#" + one + "|agent 007"},
		{"Nick: żabcia2013 ID: " + one, Plain, "#" + one + "|żabcia2013"},
		{"@żabcia2013#1234 <@" + one + ">", Plain, "#" + one + "|żabcia2013"},
		{"Kwaśny Joystick / " + two, Plain, "#" + two + "|Kwaśny Joystick"},
		{one + " " + two, Plain, "#" + one + "|#" + two},
		{"12345678901234", Plain, ""},
		{"123456789012345678901", Plain, ""},

		// Mentions and addresses.
		{"<@" + one + ">", Plain, "=#" + one},
		{"<@!" + one + ">", Plain, "=#" + one},
		{"<@" + one + "> żabcia2013", Plain, "#" + one + "|żabcia2013"},
		{"https://discord.com/users/" + one, Plain, "=#" + one},
		{"https://discord.com/users/" + one + "/?x=1#y", Plain, "=#" + one},
		{"https://discord.com/users/" + one + ".", Plain, "#" + one},
		{"discord.com/users/" + one, Plain, "#" + one},
		{"www.discord.com/users/" + one, Plain, "#" + one},
		{"discordapp.com/users/" + one + "/", Plain, "#" + one},
		{"ptb.discord.com/users/" + one, Plain, "#" + one},
		{"discord://-/users/" + one, Plain, "#" + one},
		{"<https://discord.com/users/" + one + ">", Plain, "#" + one},
		{"[profil](https://discord.com/users/" + one + ")", Plain, "#" + one},
		{"profil: https://discord.com/users/" + one, Plain, "#" + one},
		{"żabcia2013 https://discord.com/users/" + one, Plain, "#" + one + "|żabcia2013"},
		{"https://discord.com/channels/" + two, Plain, "#" + two},
		{"discord.com/channels/" + two + "/111122223333444455/666677778888999900", Plain, "#" + two},
		{"discord://-/channels/" + two + "/111122223333444455", Plain, "#" + two},
		{"https://discordlookup.com/user/" + one, Plain, "#" + one},
		{"https://cdn.discordapp.com/avatars/" + two + "/a_0d5c1f.png?size=1024", Plain, "#" + two},
		{"https://discord.com/users/123", Plain, "=#123"},
		{"https://discord.com/users/" + one + "?" + strings.Repeat("x", 200), Plain, "=#" + one},
		{"discord.com/users/" + one + "?" + strings.Repeat("x", 200), Plain, "=#" + one},

		// Places and what no list has.
		{"https://discord.gg/abcDEF", Invitation, ""},
		{"discord.gg/abcDEF", Invitation, ""},
		{"discord.com/invite/abcDEF", Invitation, ""},
		{"https://discordapp.com/invite/abcDEF?event=" + two, Invitation, ""},
		{"discord://-/invite/abcDEF", Invitation, ""},
		{".gg/abcDEF", Invitation, ""},
		{"dsc.gg/nitro", Invitation, ""},
		{"Darmowe Nitro discord.gg/abcDEF", Invitation, "Darmowe Nitro"},
		{"<@&" + two + ">", Place, ""},
		{"<#" + two + ">", Place, ""},
		{"https://discord.com/channels/@me/" + two, Place, ""},
		{"https://example.org/sklep", Foreign, ""},
		{"www.example.org", Foreign, ""},
		{"jan.kowalski@example.org", Foreign, ""},
		{"+48 600 700 800", Foreign, ""},
		{"600 700 800", Foreign, ""},
		{"61 1090 1014 0000 0712 1981 2874", Foreign, ""},
		{"PL61109010140000071219812874", Foreign, ""},
	}
}

func TestRead(t *testing.T) {
	rd := NewReader()
	for _, c := range pastes() {
		p := rd.Read(" " + c.text + "\n")
		var got []string
		for _, r := range p.Readings {
			if r.ID != "" {
				got = append(got, "#"+r.ID)
			} else {
				got = append(got, r.Name)
			}
		}
		want := strings.Split(c.text+"|"+c.want, "|")
		if strings.Contains(c.text, "|") {
			want = append([]string{c.text}, strings.Split(c.want, "|")...)
		}
		if after, typed := strings.CutPrefix(c.want, "="); typed {
			want = []string{after}
		}
		if want[len(want)-1] == "" || len(want) == 2 && want[1] == want[0] {
			want = want[:len(want)-1]
		}
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") || p.Kind != c.kind || p.Text != c.text {
			t.Errorf("%q: %d %q, want %d %q", c.text, p.Kind, got, c.kind, want)
		}
	}
}

// FuzzRead holds whatever is pasted against the promises of the package.
func FuzzRead(f *testing.F) {
	for _, c := range pastes() {
		f.Add(c.text)
	}
	rd := NewReader()
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip()
		}
		p := rd.Read(text)
		if len(p.Readings) > MaxReadings || p.Text != strings.TrimSpace(text) {
			t.Fatalf("%q: %+v", text, p)
		}
		seen := map[Reading]bool{}
		for i, r := range p.Readings {
			key := Reading{r.ID, fold(r.Name)}
			n := utf8.RuneCountInString(r.Name)
			if (r.ID == "") == (r.Name == "") || n > MaxName || seen[key] || r.ID != "" && (!digits(r.ID) || len(r.ID) > maxID) {
				t.Errorf("%q: reading %d is %+v", text, i, r)
			}
			seen[key] = true
		}
		_, isID := ID(p.Text)
		if n := utf8.RuneCountInString(p.Text); !isID && n > 0 && n <= MaxName && (len(p.Readings) == 0 || p.Readings[0].Name != p.Text) {
			t.Errorf("%q as typed does not come first: %+v", text, p.Readings)
		}
		if q := rd.Read(text + " "); len(q.Readings) != len(p.Readings) {
			t.Errorf("%q: a space makes it %+v", text, q)
		}
	})
}
