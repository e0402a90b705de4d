package httpapi

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"example.org/registry/events"
)

// The people of the pastes.
const (
	frogID    = "99000060127957749488"
	riskyID   = "990001112223334445"
	serverID  = "998800112233445566"
	doubtID   = "998800112233440000"
	trustedID = "99018151284801070687"
)

func pastePeople() []events.Data {
	entry := func(l events.List, id, chat, name string, verified bool) events.Data {
		return events.Entry{List: l, EntryID: id, ChatID: chat, Name: name, Reason: "Powód.", Verified: verified, ReportID: "Z-" + id, ReportedAt: asOf()}
	}
	all := []events.Data{
		entry(events.Scammers, "frog", frogID, "żabcia2013", true),
		entry(events.Scammers, "risky", riskyID, "ryzykant", false),
		entry(events.Scammers, "kacperek", "990001112223334446", "kacperek99", true),
		entry(events.Scammers, "emoji", "990001112223334447", "🔥płomień🔥", true),
		entry(events.Servers, "nitro", serverID, "Tanie Nitro", true),
		entry(events.Servers, "doubt", doubtID, "Sklep z kontami", false),
		entry(events.Legit, "maja", "990001112223334448", "maja1997", true),
		entry(events.Legit, "joystick", trustedID, "Kwaśny Joystick", true),
		entry(events.Legit, "kacper", "990001112223334449", "kacper", true),
	}
	for i := range 4 {
		all = append(all, entry(events.Scammers, fmt.Sprint("many", i), fmt.Sprint("99000111222333450", i), "bartek", i > 0))
	}
	return all
}

// The answers, by what they say first.
const (
	sayFrogName  = "Na liście oszustów jest konto o tej nazwie"
	sayFrogID    = "Uwaga! To konto jest na liście oszustów"
	sayRiskName  = "Ostrożnie! Na liście ryzyka jest konto o tej nazwie"
	sayRiskID    = "Ostrożnie! To konto jest na liście ryzyka"
	sayServer    = "Na liście oszustów jest serwer o tej nazwie"
	sayServerID  = "Uwaga! Ten serwer jest na liście oszustów"
	sayDoubtID   = "Ostrożnie! Ten serwer jest na liście ryzyka"
	sayTrusted   = "Na liście zaufanych jest konto o tej nazwie"
	sayTrustedID = "To konto jest na liście zaufanych"
	sayImitates  = "Ostrożnie! Ta nazwa tylko przypomina nazwę osoby zaufanej"
	sayPart      = "Nie ma wpisu o dokładnie takiej nazwie"
	sayNobody    = "Nie ma na żadnej liście"
	sayInvited   = "Z zaproszenia nie da się odczytać serwera"
	sayPlace     = "Z tego nie da się odczytać osoby ani serwera"
	sayForeign   = "Tego rejestr nie sprawdza"
)

// What people paste, and what the page must say first. With finds, the page leads to that entry's page.
func pageOfPaste() []struct{ paste, says, finds string } {
	const frog, nitro, joystick, maja, risky = "scammers/frog", "servers/nitro", "legit/joystick", "legit/maja", "scammers/risky"
	return []struct{ paste, says, finds string }{
		// A nick, bare and dressed.
		{"żabcia2013", sayFrogName, frog},
		{"ŻABCIA2013", sayFrogName, frog},
		{"  żabcia2013  ", sayFrogName, frog},
		{"@żabcia2013", sayFrogName, frog},
		{"@@żabcia2013", sayFrogName, frog},
		{"żabcia2013#1234", sayFrogName, frog},
		{"@żabcia2013#1234", sayFrogName, frog},
		{"żabcia2013#0", sayFrogName, frog},
		{"żabcia2013 #1234", sayFrogName, frog},
		{"żabcia2013,", sayFrogName, frog},
		{"żabcia2013.", sayFrogName, frog},
		{"żabcia2013!", sayFrogName, frog},
		{"żabcia2013?", sayFrogName, frog},
		{"żabcia2013…", sayFrogName, frog},
		{"żabcia2013:", sayFrogName, frog},
		{`"żabcia2013"`, sayFrogName, frog},
		{"„żabcia2013”", sayFrogName, frog},
		{"'żabcia2013'", sayFrogName, frog},
		{"`żabcia2013`", sayFrogName, frog},
		{"**żabcia2013**", sayFrogName, frog},
		{"(żabcia2013)", sayFrogName, frog},
		{"<żabcia2013>", sayFrogName, frog},
		{"- żabcia2013", sayFrogName, frog},
		{"żabcia2013 😀", sayFrogName, frog},
		{"👩‍👧 żabcia2013 ❤️", sayFrogName, frog},
		{"<:pepe:112233445566778899> żabcia2013", sayFrogName, frog},
		{"\u200bżabcia2013\u200f", sayFrogName, frog},
		{"żab\u00adcia2013", sayFrogName, frog},
		{"ｚabcia2013", sayNobody, frog}, // similar: the letters are those, the marks are not
		{"zabcia2013", sayNobody, frog},
		{"nick: żabcia2013", sayFrogName, frog},
		{"Nick żabcia2013", sayFrogName, frog},
		{"użytkownik @żabcia2013", sayFrogName, frog},
		{"żabcia2013, maja1997", sayFrogName, frog},
		{"maja1997; żabcia2013", sayFrogName, frog},
		{"🔥płomień🔥", sayFrogName, "scammers/emoji"},
		{"płomień", sayPart, "scammers/emoji"},
		{"żabcia", sayPart, frog},
		{"ryzykant", sayRiskName, risky},
		{"Tanie Nitro", sayServer, nitro},
		{"serwer: Tanie Nitro!", sayServer, nitro},
		{"tanie  nitro", sayServer, nitro},
		{"bartek", "Na liście oszustów są 3 konta o tej nazwie", "scammers/many0"},
		{"@bartek,", "Na liście oszustów są 3 konta o tej nazwie", "scammers/many3"},

		// An id.
		{frogID, sayFrogID, frog},
		{"9900 0060 1279 5774 9488", sayFrogID, frog},
		{"9900\u00a00060\u00a01279\u00a05774\u00a09488", sayFrogID, frog},
		{"990 000 601 279 577 494 88", sayFrogID, frog},
		{"ID: " + frogID, sayFrogID, frog},
		{"ID 9900 0060 1279 5774 9488.", sayFrogID, frog},
		{"User ID: " + riskyID, sayRiskID, risky},
		{"(" + riskyID + ")", sayRiskID, risky},
		{riskyID + ",", sayRiskID, risky},
		{frogID + " żabcia2013", sayFrogID, frog},
		{"żabcia2013 " + frogID, sayFrogID, frog},
		{"żabcia2013 (9900 0060 1279 5774 9488)", sayFrogID, frog},
		{"Nick: ktoś inny ID: " + frogID, sayFrogID, frog},
		{"żabcia2013 112233445566778899", sayFrogName, frog}, // another id: only the name is known
		{trustedID + " żabcia2013", sayTrustedID, frog},      // the id decides, and the namesake is shown
		{trustedID, sayTrustedID, joystick},
		{doubtID, sayDoubtID, "servers/doubt"},
		{"112233445566778899", sayNobody, ""},

		// Mentions and addresses.
		{"<@" + frogID + ">", sayFrogID, frog},
		{"<@!" + frogID + ">", sayFrogID, frog},
		{"<@" + frogID + "> to oszust?", sayFrogID, frog},
		{"https://discord.com/users/" + frogID, sayFrogID, frog},
		{"http://discord.com/users/" + frogID + "/", sayFrogID, frog},
		{"discord.com/users/" + frogID, sayFrogID, frog},
		{"www.discordapp.com/users/" + frogID + "?x=1", sayFrogID, frog},
		{"canary.discord.com/users/" + frogID, sayFrogID, frog},
		{"discord://-/users/" + frogID, sayFrogID, frog},
		{"<https://discord.com/users/" + frogID + ">", sayFrogID, frog},
		{"[profil](https://discord.com/users/" + frogID + ")", sayFrogID, frog},
		{"to on: https://discord.com/users/" + frogID + ".", sayFrogID, frog},
		{"https://discord.com/users/" + frogID + "?" + strings.Repeat("utm=x&", 30), sayFrogID, frog},
		{"https://discord.com/channels/" + serverID + "/112233445566778899", sayServerID, nitro},
		{"discord.com/channels/" + serverID, sayServerID, nitro},
		{"discord://-/channels/" + serverID + "/1/2", sayServerID, nitro},
		{"https://discord.gg/abcDEF", sayInvited, ""},
		{"discord.gg/abcDEF", sayInvited, ""},
		{"https://discord.com/invite/abcDEF", sayInvited, ""},
		{".gg/abcDEF", sayInvited, ""},
		{"Tanie Nitro https://discord.gg/abcDEF", sayServer, nitro},
		{"<#112233445566778899>", sayPlace, ""},
		{"<@&112233445566778899>", sayPlace, ""},
		{"https://discord.com/channels/@me/112233445566778899", sayPlace, ""},
		{"https://tani-sklep.example/konto", sayForeign, ""},
		{"oszust@example.org", sayForeign, ""},
		{"+48 600 700 800", sayForeign, ""},
		{"61 1090 1014 0000 0712 1981 2874", sayForeign, ""},

		// Trusted persons, and who takes their looks.
		{"maja1997", sayTrusted, maja},
		{"@maja1997", sayTrusted, maja},
		{"mаja1997", sayImitates, maja},
		{"@mаja1997,", sayImitates, maja},
		{"Kwasny Joystick", sayImitates, joystick},
		{"Kwaśny Joystick", sayTrusted, joystick},
		{"kacper", sayTrusted, "legit/kacper"}, // although the API leaves legit out for kacperek99
		{"kаcper", sayImitates, "legit/kacper"},

		// Nobody.
		{"nikt taki", sayNobody, ""},
		{"nikt, żaden", sayNobody, ""},
		{"😀", sayNobody, ""},
	}
}

// Whatever people paste, the page finds whom they mean, and never says "nobody" of somebody.
func TestPastes(t *testing.T) {
	f := serveSite(t)
	f.apply(pastePeople()...)
	title := regexp.MustCompile(`<h1 id="wynik">(.*?)</h1>`)
	cases := pageOfPaste()
	if len(cases) < 60 {
		t.Fatalf("%d pastes", len(cases))
	}
	for _, c := range cases {
		a := f.open(t, http.MethodGet, "/?search="+url.QueryEscape(c.paste))
		found := title.FindStringSubmatch(a.body)
		if a.status != http.StatusOK || len(found) < 2 {
			t.Errorf("%q: status %d", c.paste, a.status)
			continue
		}
		if said := strings.ReplaceAll(html.UnescapeString(found[1]), "\u00a0", " "); said != c.says {
			t.Errorf("%q: %q, want %q", c.paste, said, c.says)
		}
		if c.finds != "" && !strings.Contains(a.body, `href="/wpis/`+c.finds+`"`) {
			t.Errorf("%q: no way to %s", c.paste, c.finds)
		}
		if c.finds == "" && strings.Contains(a.body, `href="/wpis/`) {
			t.Errorf("%q: finds somebody", c.paste)
		}
		if !strings.Contains(a.body, `value="`+html.EscapeString(strings.TrimSpace(c.paste))+`"`) && !strings.ContainsAny(c.paste, `'"+`) {
			t.Errorf("%q: the field has forgotten it", c.paste)
		}
	}
}

// The API takes its parameters as they are, but for mentions and addresses.
func TestPastesAreThePages(t *testing.T) {
	f := serve(t)
	f.apply(pastePeople()...)
	for search, found := range map[string]bool{
		"żabcia2013": true, "<@" + frogID + ">": true, "https://discord.com/users/" + frogID: true,
		"@żabcia2013": false, "żabcia2013,": false, "discord.com/users/" + frogID: false, "9900 0060 1279 5774 9488": false,
	} {
		a := f.get(t, "/api/check?search="+url.QueryEscape(search))
		if got := strings.Contains(a.body, `"_id":"frog"`); got != found {
			t.Errorf("%q: found %v", search, got)
		}
	}
}

// A text that is too long is still in the field, on every page that searches.
func TestTooLongATextStays(t *testing.T) {
	f := serveSite(t)
	long := strings.Repeat("ż", 101)
	for _, path := range sitePages() {
		a := f.open(t, http.MethodGet, path+"?search="+long)
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "Za długi tekst") || !strings.Contains(a.body, "Wpisz najwyżej 100 znaków.") ||
			!strings.Contains(a.body, `action="`+path+`"`) || !strings.Contains(a.body, `value="`+long+`"`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}
