package httpapi

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"example.org/registry/events"
	"example.org/registry/httpapi/verdict"
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
		return events.Entry{Revision: 1, List: l, EntryID: id, ChatID: chat, Name: name, Reason: "Powód.", Verified: verified, ReportID: "Z-" + id, ReportedAt: asOf()}
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

// What people paste, and what the page must say. With finds, the page leads to that entry's page. The
// rules have their tests in package verdict.
func pageOfPaste() []struct{ paste, says, finds string } {
	const frog, nitro, joystick, maja, risky = "scammers/frog", "servers/nitro", "legit/joystick", "legit/maja", "scammers/risky"
	return []struct{ paste, says, finds string }{
		{"żabcia2013", "accused", frog},
		{"żabcia2013, maja1997", "caution", frog},
		{"@bartek,", "caution", "scammers/many3"},
		{"zabcia2013", "caution", frog},
		{"oszukał mnie płomień na 200 zł", "caution", "scammers/emoji"},
		{"ryzykant", "risk", risky},
		{frogID, "accused", frog},
		{strings.Repeat("ż ", 200) + frogID, "accused", frog},
		{trustedID + " żabcia2013", "caution", frog},
		{"https://discord.com/channels/" + serverID + "/112233445566778899", "accused", nitro},
		{"https://discord.gg/abcDEF", "unchecked", ""},
		{"<@&" + frogID + ">", "unchecked", ""},
		{trustedID, "trusted", joystick},
		{"Kwaśny Joystick " + trustedID, "trusted", joystick},
		{"maja1997", "trusted-name", maja},
		{"mаja1997", "caution", maja}, // Cyrillic
		{"żabci", "unchecked", frog},  // a part of a name: a neutral line
		{"711111111111111111", "none", ""},
		{"nikt taki", "unchecked", ""},
	}
}

// Whatever people paste, the page finds whom they mean, and never says "nobody" of somebody.
func TestPastes(t *testing.T) {
	f := serveSite(t)
	f.apply(pastePeople()...)
	value := regexp.MustCompile(`<section class="verdict [a-z]+" data-verdict="([a-z-]+)"`)
	for _, c := range pageOfPaste() {
		a := f.fetch(t, http.MethodGet, "/?search="+url.QueryEscape(c.paste))
		found := value.FindStringSubmatch(a.body)
		if a.status != http.StatusOK || len(found) < 2 {
			t.Errorf("%q: status %d", c.paste, a.status)
			continue
		}
		if found[1] != c.says {
			t.Errorf("%q: %q, want %q", c.paste, found[1], c.says)
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

// Below the answer stands what the API finds for the same text: the same entries in the same order.
func TestPageShowsWhatTheAPIFinds(t *testing.T) {
	f := serveSite(t)
	f.apply(pastePeople()...)
	link, entry := regexp.MustCompile(`href="/wpis/([a-z]+/[^"]+)"`), regexp.MustCompile(`"kind":"([a-z]+)"|"_id":"([^"]+)"|"imitates":`)
	found := 0
	for _, query := range []url.Values{
		{"search": {"a"}}, {"search": {"kacper"}}, {"search": {"żabci"}}, {"search": {"zabcia2013"}}, {"search": {"mаja1997"}}, {"search": {"9900"}}, {"search": {"@bartek"}}, {"search": {"bartek#0"}},
		{"search": {frogID}}, {"id": {frogID}}, {"id": {"<@" + frogID + ">"}}, {"search": {"https://discord.com/users/" + trustedID}}, {"search": {"nikt"}, "id": {riskyID}}, {"search": {"nikt taki"}},
	} {
		list := ""
		var want []string
		for _, m := range entry.FindAllStringSubmatch(f.get(t, "/api/check?"+query.Encode()).body, -1) {
			switch {
			case m[1] != "":
				list = m[1]
			case m[2] == "":
				list = "legit" // of imitates
			default:
				want = append(want, list+"/"+m[2])
			}
		}

		_, same, _ := strings.Cut(f.fetch(t, http.MethodGet, "/?"+query.Encode()).body, `<section class="same"`)
		same, _, _ = strings.Cut(same, "</section>")
		var got []string
		for _, m := range link.FindAllStringSubmatch(same, -1) {
			got = append(got, m[1])
		}
		found += len(got)
		if !slices.Equal(got, want) {
			t.Errorf("%v: the page has %q, the API %q", query, got, want)
		}
	}
	if found < 20 {
		t.Errorf("only %d entries were found", found)
	}
}

// Verdicts are counted as they are made: not on the empty form, and not where a page is remembered or known.
func TestVerdictsAreCounted(t *testing.T) {
	f := serveSite(t)
	f.apply(pastePeople()...)
	for _, search := range []string{"", "żabcia2013", "maja1997", "600 700 800"} {
		f.fetch(t, http.MethodGet, "/?search="+url.QueryEscape(search))
	}
	want := map[verdict.Value]float64{verdict.Accused: 1, verdict.TrustedName: 1, verdict.Unchecked: 1}
	for _, v := range verdict.Values() {
		if n := testutil.ToFloat64(f.public.metrics.verdicts.WithLabelValues(string(v))); n != want[v] {
			t.Errorf("%s: %v, want %v", v, n, want[v])
		}
	}
}
