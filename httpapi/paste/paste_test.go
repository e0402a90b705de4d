package paste

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	one = "99000060127957749488"
	two = "998800112233445566"
)

// shown writes a paste down: subjects between bars, an id with #, the readings of a name between
// equals signs and the cleaned ones with ~; @ before the @words and ? before the guesses.
func shown(p Paste) string {
	var all []string
	for _, s := range p.Subjects {
		mark := []string{"", "@", "?"}[s.How]
		if s.ID != "" {
			all = append(all, mark+"#"+s.ID)
			continue
		}
		var names []string
		for _, n := range s.Names {
			names = append(names, strings.Repeat("~", btoi(n.Cleaned))+n.Text)
		}
		all = append(all, mark+strings.Join(names, "="))
	}
	if p.Omitted > 0 {
		all = append(all, fmt.Sprint("+", p.Omitted))
	}
	return strings.Join(all, " | ")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pastes are texts as people paste them, and what they are read as.
func pastes() []struct {
	text string
	kind Kind
	want string
} {
	return []struct {
		text string
		kind Kind
		want string
	}{
		// Names.
		{"żabcia2013", Plain, "żabcia2013"},
		{"@żabcia2013", Plain, "@żabcia2013=żabcia2013"},
		{"@@żabcia2013", Plain, "@@żabcia2013=@żabcia2013=~żabcia2013"},
		{"żabcia2013#1234", Plain, "żabcia2013#1234=~żabcia2013"},
		{"żabcia#12345", Plain, "żabcia#12345"},
		{"@żabcia2013#1234.", Plain, "@żabcia2013#1234.=żabcia2013#1234.=~żabcia2013"},
		{"żabcia2013,", Plain, "żabcia2013,=żabcia2013"},
		{"żabcia2013!!!", Plain, "żabcia2013!!!=~żabcia2013"},
		{`"@nocny.ryś"`, Plain, `"@nocny.ryś"=nocny.ryś`},
		{"„żabcia2013”", Plain, "„żabcia2013”=żabcia2013"},
		{"**żabcia2013**", Plain, "**żabcia2013**=żabcia2013"},
		{"- żabcia2013", Plain, "- żabcia2013=~żabcia2013"},
		{"żabcia2013 😀", Plain, "żabcia2013 😀=~żabcia2013"},
		{"<:pepe:" + two + ">żabcia2013", Plain, "<:pepe:" + two + ">żabcia2013=:pepe:" + two + ">żabcia2013=~pepe:" + two + ">żabcia2013 | ~żabcia2013"},
		{"𝗺𝗮𝗷𝗮", Plain, "𝗺𝗮𝗷𝗮=~maja"},
		{"_żabcia_", Plain, "_żabcia_"},
		{"nick: żabcia2013", Plain, "nick: żabcia2013=żabcia2013"},
		{"Nick = żabcia2013", Plain, "Nick = żabcia2013=żabcia2013"},
		{"nazwa użytkownika: żabcia2013", Plain, "nazwa użytkownika: żabcia2013=żabcia2013"},
		{"nick żabcia2013", Plain, "nick żabcia2013=żabcia2013 | ?~nick"},
		{"Kwaśny Joystick", Plain, "Kwaśny Joystick | ?~Kwaśny | ?~Joystick"},
		{"żabcia2013, maja1997", Plain, "żabcia2013, maja1997 | żabcia2013 | maja1997"},
		{"żabcia2013\nmaja1997", Plain, "żabcia2013 maja1997 | żabcia2013 | maja1997"},
		{"@a i @nocny.ryś!", Plain, "@a i @nocny.ryś!=a i @nocny.ryś!=~a i @nocny.ryś | @a | @nocny.ryś | ?~a i | ?~i @nocny.ryś"},
		{"wczoraj napisał do mnie niejaki nocny.ryś i chciał kod", Plain, "wczoraj napisał do mnie niejaki nocny.ryś i chciał kod | ?~nocny.ryś"},
		{"😀", Plain, "😀"},
		{"!!!", Plain, "!!!"},

		// Ids.
		{one, Plain, "#" + one},
		{"9900-0060-1279-5774-9488", Plain, "#" + one},
		{"9900, 0060, 1279, 5774, 9488", Plain, "#" + one},
		{"ID: " + one, Plain, "#" + one},
		{"id" + one, Plain, "#" + one},
		{"id-" + one, Plain, "#" + one},
		{"x" + one, Plain, "?#" + one + " | x" + one},
		{"９９８８００１１２２３３４４５５６６", Plain, "#" + two},
		{"żabcia2013 (" + one + ")", Plain, "#" + one + " | żabcia2013 (" + one + ")=żabcia2013 (" + one + "=żabcia2013 (=żabcia2013"},
		{one + " " + two, Plain, "#" + one + " | #" + two},
		{"9900 0060 1279 5774 9488 12", Plain, "?#9900006012795774 | ?#" + one + " | ?#0060127957749488 | ?#006012795774948812 | 9900 0060 1279 5774 9488 12"},
		{"12345678901234", Plain, "12345678901234"},
		{"123456789012345678901", Plain, "123456789012345678901"},
		{"<@" + one + ">", Plain, "#" + one},
		{"&lt;@!" + one + "&gt;", Plain, "#" + one},
		{"<@" + one + "> żabcia2013", Plain, "#" + one + " | <@" + one + "> żabcia2013=" + one + "> żabcia2013=żabcia2013"},
		{"https://discord.com/users/" + one + "/?x=1#y", Plain, "#" + one},
		{"discord.com/users/" + one, Plain, "#" + one},
		{"discord.com/channels/" + two + "/111122223333444455/666677778888999900", Plain, "#" + two},
		{"https://discordlookup.com/user/" + one, Web, "?#" + one + " | https://discordlookup.com/user/" + one},
		{"https://discord.com/users/123", Plain, "#123"},

		// Addresses end where something else begins.
		{"https://discord.com/users/" + one + " https://discord.com/users/" + two, Plain, "#" + one + " | #" + two},
		{"discord.com/users/" + one + ",discord.com/users/" + two, Plain, "#" + one + " | #" + two},
		{"https://discord.com/users/" + one + "/ " + two, Plain, "#" + one + " | #" + two},
		{"https://discord.com/users/" + one + "?x=" + two, Plain, "#" + one + " | ?#" + two},
		{"[nocny.ryś](https://discord.com/users/" + one + ")", Plain, "#" + one + " | [nocny.ryś](https://discord.com/users/" + one + ")=nocny.ryś](https://discord.com/users/" + one + "=[nocny.ryś](=nocny.ryś"},
		{"https://discord.com.login.ru/users/" + one, Plain, "?#" + one + " | https://discord.com.login.ru/users/" + one},
		{"nr9900 0060 1279 5774 9488", Plain, "#0060127957749488 | ?#9900006012795774 | ?#" + one + " | nr9900 0060 1279 5774 9488=nr9900"},
		{"9900—0060—1279—5774—9488", Plain, "#" + one},
		{"24/7 shop " + one, Plain, "#" + one + " | 24/7 shop " + one + " | 24/7 shop | 24 | 7 shop | ?~24/7 | ?~shop"},

		// What no list has.
		{"https://discord.gg/abcDEF", Invitation, "https://discord.gg/abcDEF"},
		{"Darmowe discord.gg/abcDEF", Invitation, "Darmowe discord.gg/abcDEF=Darmowe"},
		{"discord://-/invite/abcDEF", Invitation, "discord://-/invite/abcDEF=//-/invite/abcDEF=~invite/abcDEF"},
		{"<@&" + two + ">", Place, "<@&" + two + ">=&" + two + "=~" + two},
		{"https://discord.com/channels/@me/" + two, Place, "https://discord.com/channels/@me/" + two},
		{"https://example.org/sklep", Web, "https://example.org/sklep"},
		{"discorcl.gift/nitro", Web, "discorcl.gift/nitro"},
		{"nitro-free[.]gift", Web, "nitro-free[.]gift=nitro-free.gift"},
		{"kto.to", Web, "kto.to"},
		{"jan.kowalski", Plain, "jan.kowalski"},
		{"jan.kowalski@example.org", Mail, "jan.kowalski@example.org"},
		{"a@b", Plain, "a@b"},
		{"600700800", Telephone, "600700800"},
		{"61 1090 1014 0000 0712 1981 2874", Account, "?#611090101400000712 | ?#1090101400000712 | ?#10901014000007121981 | ?#1014000007121981 | " +
			"?#10140000071219812874 | ?#0000071219812874 | 61 1090 1014 0000 0712 1981 2874"},
		{"PL61109010140000071219812874", Account, "PL61109010140000071219812874"},
		{"ab12cdef34567890", Plain, "ab12cdef34567890"},
		{"4111111111111111", Card, "#4111111111111111"},
		{"steamcommunity.com/profiles/76561198000000000", Profile, "?#76561198000000000 | steamcommunity.com/profiles/76561198000000000"},
	}
}

func TestRead(t *testing.T) {
	rd := NewReader()
	for _, c := range pastes() {
		if p := rd.Read(" " + c.text + "\n"); shown(p) != c.want || p.Kind != c.kind || p.Text != c.text {
			t.Errorf("%q:\n kind %d %s\n want %d %s", c.text, p.Kind, shown(p), c.kind, c.want)
		}
	}
}

// An id of its own field counts beside the text.
func TestReadWithID(t *testing.T) {
	rd := NewReader()
	for _, c := range [][3]string{
		{"maja1997", "9900-0060-1279-5774-9488", "#" + one + " | maja1997"},
		{"", one, "#" + one},
		{"", "abc", "#abc"},
		{"maja1997", "", "maja1997"},
	} {
		if p := rd.ReadWithID(c[0], c[1]); shown(p) != c[2] {
			t.Errorf("%q, %q: %s, want %s", c[0], c[1], shown(p), c[2])
		}
	}
}

// What is beyond the bounds is counted.
func TestLeft(t *testing.T) {
	rd := NewReader()
	names, ids := "", ""
	for i := range MaxNames + 5 {
		names += fmt.Sprintf("n%d,", i)
		ids += fmt.Sprintf("<@%d>", i)
	}
	if p := rd.Read(names); p.Omitted != 5 || len(p.Subjects) != MaxNames+1 {
		t.Errorf("%d names and %d left", len(p.Subjects)-1, p.Omitted)
	}
	if p := rd.Read(ids); p.Omitted != 5 || p.Subjects[MaxIDs-1].ID == "" {
		t.Errorf("%d left: %s", p.Omitted, shown(p))
	}
	if p := rd.Read(names[:len(names)-len("n20,n21,n22,n23,n24,")]); p.Omitted != 0 {
		t.Errorf("%d of %d names left", p.Omitted, MaxNames)
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
		if len(p.Subjects) > MaxIDs+1+MaxNames+maxGuesses || p.Text != strings.TrimSpace(text) {
			t.Fatalf("%q: %+v", text, p)
		}
		seen := map[string]bool{}
		for i, s := range p.Subjects {
			if (s.ID == "") == (len(s.Names) == 0) || s.Within >= i || s.ID != "" && (!Digits(s.ID) || len(s.ID) > maxID) {
				t.Errorf("%q: subject %d is %+v", text, i, s)
			}
			for _, n := range s.Names {
				if k := utf8.RuneCountInString(n.Text); k == 0 || k > MaxName {
					t.Errorf("%q: subject %d has a name of %d", text, i, k)
				}
			}
			key := s.ID
			if key == "" {
				key = "name " + folded(s.Names[0].Text)
			}
			if seen[key] {
				t.Errorf("%q: %q twice", text, key)
			}
			seen[key] = true
		}
		isID := !slices.ContainsFunc(p.Subjects, func(s Subject) bool { return s.ID == "" }) // nothing else is left
		whole := strings.Join(strings.Fields(p.Text), " ")
		if n := utf8.RuneCountInString(whole); !isID && n > 0 && n <= MaxName && utf8.RuneCountInString(p.Text) <= MaxText && !seen["name "+folded(whole)] {
			t.Errorf("%q as typed is no name: %s", text, shown(p))
		}
		if q := rd.Read(text + " "); shown(q) != shown(p) {
			t.Errorf("%q: a space makes it %s", text, shown(q))
		}
	})
}
