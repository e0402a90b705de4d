package verdict

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// The people of the texts. Chat ids have 17 to 20 digits, as the platform's do.
const (
	frogID   = "91000000000000000"    // żabcia2013, accused
	tomekID  = "9100000000000000018"  // tomek, accused
	riskyID  = "990001112223334445"   // ryzykant, on the risk list
	nitroID  = "998800112233445566"   // Tanie Nitro, a server, accused
	kefirID  = "990001112223334448"   // Zielony Kefir, trusted
	agentID  = "990001112223334450"   // Agent 7, trusted
	agentID2 = "01812345678901234"    // Maja (PL), trusted
	nobodyID = "112233445566778899"   // on no list
	otherID  = "22222222222222222222" // on no list
)

// longText is too long for anything but ids.
var longText = strings.Repeat("x ", MaxText/2+1)

// longName is a name of more words than are looked for within a text.
const longName = "a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3"

// entry is an entry of the tests.
func entry(l events.List, id, chat, name string, verified bool) events.Entry {
	return events.Entry{Revision: 1, List: l, EntryID: id, ChatID: chat, Name: name, Verified: verified, ReportID: "Z-" + id, ReportedAt: time.Unix(1, 0)}
}

// people is a small registry with the odd names of real lists. Bartek is both accused and trusted.
func people() []events.Entry {
	accused := func(id, chat, name string) events.Entry { return entry(events.Scammers, id, chat, name, true) }
	trusted := func(id, chat, name string) events.Entry { return entry(events.Legit, id, chat, name, true) }
	return []events.Entry{
		accused("frog1", frogID, "żabcia2013"),
		accused("tomek1", tomekID, "tomek"),
		accused("pair1", "990001112223334451", "Żelazny Szczupak"),
		accused("edge1", "990001112223334452", "◇Edmund◇"),
		accused("bars1", "990001112223334453", "| Cyprian |"),
		accused("entity1", "990001112223334454", "Sklep&nbsp;Tani"),
		accused("escape1", "990001112223334455", "Kod%C5%82o"),
		accused("clock1", "990001112223334456", "Radio 21:37"),
		accused("fire1", "990001112223334457", "🔥🔥🔥"),
		accused("blank1", "990001112223334458", "\u3164"),
		accused("label1", "990001112223334459", "Nick"),
		accused("short1", "990001112223334460", "PL"),
		accused("comma1", "990001112223334461", "Gry, konta i nitro"),
		accused("words1", "990001112223334462", "sześć słów ma to imię tu"),
		accused("host1", "990001112223334463", "hxxps://kocur"),
		accused("chat1", "4123456789012", "dawny numer"),
		accused("unknown1", "unknown-unknown1", "bez numeru"),
		accused("bartek1", "990001112223334464", "bartek"),
		accused("long1", "990001112223334470", longName),
		accused("mention1", "990001112223334469", "<@990001112223334465>"),
		entry(events.Scammers, "risky1", riskyID, "ryzykant", false),
		entry(events.Servers, "nitro1", nitroID, "Tanie Nitro", true),
		entry(events.Servers, "shop1", "998800112233440000", "Sklep z kontami", false),
		trusted("kefir1", kefirID, "Zielony Kefir"),
		trusted("agent1", agentID, "Agent 7"),
		trusted("maja1", agentID2, "Maja (PL)"),
		trusted("tom1", "990001112223334465", "xX_tomek_Xx"),
		trusted("bartek2", "990001112223334466", "bartek"),
		trusted("hidden", "990001112223334467", "Ukryta"),
		trusted("digits1", "990001112223334468", "112358132134558914"),
	}
}

func viewOf(all []events.Entry) *readmodel.View {
	r, m := readmodel.NewRenderer(), readmodel.New()
	var records []readmodel.Record
	for i, e := range all {
		records = append(records, r.Render(uint64(i+1), e))
	}
	v, _ := m.Apply(records, uint64(len(records)))
	return v
}

// check is the verdict of a text.
func check(t testing.TB, view *readmodel.View, search, id string) Verdict {
	t.Helper()
	v, err := Check(context.Background(), view, search, id)
	require.NoError(t, err)
	return v
}

// Texts, and their verdicts as the rules give them.
func TestTexts(t *testing.T) {
	const t18 = "9900 0111 2223 3344 48"
	view := viewOf(people())
	for _, c := range []struct {
		text   string
		value  Value
		reason Reason
	}{
		// A trusted person's id, alone or with their own name.
		{kefirID, Trusted, ByID},
		{"<@" + kefirID + ">", Trusted, ByID},
		{"<@!" + kefirID + ">", Trusted, ByID},
		{t18, Trusted, ByID},
		{"https://discord.com/users/" + kefirID + "/", Trusted, ByID},
		{"canary.discord.com/users/" + kefirID, Trusted, ByID},
		{"ID: " + kefirID, Caution, Beside},
		{"Zielony Kefir " + kefirID, Trusted, ByID},
		{kefirID + "\nzielony   kefir", Trusted, ByID},
		{"@Zielony Kefir " + kefirID, Trusted, ByID},
		{"Zielony Kefir (ID: " + t18 + ")", Caution, Beside},
		{kefirID + " (Zielony Kefir)", Caution, Beside},
		{kefirID + "|Zielony Kefir", Trusted, ByID},
		{"Agent 7 " + agentID, Trusted, ByID},
		{"Maja (PL) - " + agentID2, Caution, Beside},
		{"bartek 990001112223334466", Trusted, ByID},
		{"990001112223334465", Trusted, ByID},
		{"<@!990001112223334465>", Trusted, ByID},
		// … and with anything else.
		{"<@990001112223334465>", Caution, Beside}, // an accused's name, literally
		{kefirID + " i", Caution, Beside},
		{"czy " + kefirID + " jest ok?", Caution, Beside},
		{kefirID + ".", Caution, Beside},
		{"(" + kefirID + ")", Caution, Beside},
		{"`" + kefirID + "`", Caution, Beside},
		{kefirID + "\u200b", Caution, Beside},
		{kefirID + " 50", Caution, Beside},
		{kefirID + " <#1>", Caution, Beside},
		{"Zielony Kefir Support " + kefirID, Caution, Beside},
		{"Zielony Kefyr " + kefirID, Caution, Beside},
		{"Agent 7 " + kefirID, Caution, Beside},
		{"żabcia2013 " + kefirID, Caution, Beside},
		{"◇Edmund◇ " + kefirID, Caution, Beside},
		{"🔥🔥🔥, ID: " + kefirID, Caution, Beside},
		{"Żelazny i Szczupak " + kefirID, Caution, Beside},
		{kefirID + " " + agentID, Caution, Beside},
		{kefirID + " " + nobodyID, Caution, Beside},
		{"https://discord.com/users/" + kefirID + "?x=1", Caution, Beside},
		{"https://discord.com/users/" + kefirID + "/../" + nobodyID, Caution, Beside},
		{"https://nagroda.pl/users/" + kefirID, Caution, Beside},
		{"x" + kefirID, Caution, Beside},
		{"٩٩٠٠٠١١١٢٢٢٣٣٣٤٤٤٨", Caution, Beside},
		{"2 " + t18, Caution, Beside},
		{"https://rejestr.example/?id=" + kefirID, Caution, Beside},
		// A trusted person's name.
		{"Zielony Kefir", TrustedName, ByName},
		{"@zielony  KEFIR", TrustedName, ByName},
		{"nick: Zielony Kefir", Caution, InText},
		{"xX_tomek_Xx", TrustedName, ByName},
		{"Maja (PL)", TrustedName, ByName},
		{"112358132134558914", TrustedName, ByName},
		{"https://rejestr.example/wpis/legit/kefir1", Caution, InText},
		{"Z-kefir1", Caution, InText},
		{"Zielony Kefir✅", Caution, Alike},
		{"Zielony Kefir#1234", Caution, InText},
		{"Zielony\nKefir", TrustedName, ByName},
		{"Zielоny Kefir", Caution, Alike}, // Cyrillic
		{"czy Zielony Kefir", Caution, InText},
		{"https://rejestr.example/wpis/legit/kefir1 ok", Caution, InText},
		{"https://zly.example/wpis/legit/kefir1", Caution, InText},
		// An accused's id, the number or the address of a report.
		{frogID, Accused, ByID},
		{"<@" + frogID + "> to oszust?", Accused, ByID},
		{"9100-0000-0000-0000-0", Accused, ByID},
		{"91000000000\n000000", Accused, ByID},
		{"٩١٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠", Accused, ByID},
		{"https://nagroda.pl/users/" + frogID + "?x", Accused, ByID},
		{kefirID + " " + frogID, Accused, ByID},
		{"profil" + frogID, Accused, ByID},
		{riskyID, Risk, ByID},
		{"https://discord.com/channels/" + nitroID + "/1", Accused, ByID},
		{"Z-frog1", Accused, ByID},
		{"https://rejestr.example/wpis/scammers/frog1", Accused, ByID},
		{"pisał https://rejestr.example/wpis/scammers/frog1 ok", Accused, ByID},
		{"4123456789012", Accused, ByID},
		{"unknown-unknown1", Accused, ByID},
		{"4123456789012 to oszust", Caution, InText},
		{"zgłoszenie z-frog1", Caution, InText},
		{"910 x 00000000000000 " + "91 000000000000000 5", Caution, InText},
		// An accused's name.
		{"żabcia2013", Accused, ByName},
		{"ŻABCIA2013", Accused, ByName},
		{"@żabcia2013", Accused, ByName},
		{"nick: żabcia2013", Caution, InText},
		{"żabcia2013, Zielony Kefir", Caution, InText},
		{"Zielony Kefir\nżabcia2013", Caution, InText},
		{"ryzykant", Risk, ByName},
		{"Tanie Nitro", Accused, ByName},
		{"◇Edmund◇", Accused, ByName},
		{"| Cyprian |", Accused, ByName},
		{"Sklep&nbsp;Tani", Accused, ByName},
		{"Kod%C5%82o", Accused, ByName},
		{"Radio 21:37", Accused, ByName},
		{"🔥🔥🔥", Accused, ByName},
		{"\u3164", Accused, ByName},
		{"Nick", Accused, ByName},
		{"Gry, konta i nitro", Accused, ByName},
		{"hxxps://kocur", Accused, ByName},
		{"bartek", Caution, Shared},
		{"Zielony Kefir,", Caution, Alike},
		{"„żabcia2013”", Caution, Alike},
		{"żabcia2013.", Caution, Alike},
		{"żabcia2013,", Caution, Alike},
		{"zabcia2013", Caution, Alike},
		{"Edmund", Caution, Alike},
		{"Cyprian", Caution, Alike},
		{"Sklep Tani", Caution, Alike},
		{"Kodło", Caution, Alike},
		{"żabcia2013 " + nobodyID, Caution, OtherID},
		{nobodyID + "\nZielony Kefir", Caution, OtherID},
		{"oszukał mnie Żelazny Szczupak na 200 zł", Caution, InText},
		{"ŻELAZNYSZCZUPAK", Caution, Alike},
		{"🔥🔥🔥 proszę o pomoc", Caution, InText},
		{"to jest Radio 21:37 czy nie", Caution, InText},
		{"oto sześć słów ma to imię tu właśnie", Caution, InText},
		{"Maja | PL", Caution, Alike},
		{"\u3164 proszę o pomoc", Caution, InText},
		{longName, Accused, ByName},
		{"nick: " + longName, Caution, InText},
		{longName + " 712345678912345678", Caution, OtherID},
		{strings.ReplaceAll(longName, " ", "."), Caution, Alike},
		{"kto to\n" + longName + "\ncoś więcej", Caution, InText},
		{"Z-frog1٩٩٠٠٠", Caution, InText},
		{"Szczupak Żelazny", Unchecked, Nothing},
		// Nobody.
		{nobodyID, None, ByID},
		{"<@" + nobodyID + ">", None, ByID},
		{"zenek.nowak", Unchecked, Nothing},
		{"zenek " + nobodyID, Unchecked, Nothing},
		// Neither.
		{"", Unchecked, Nothing},
		{nobodyID + " " + otherID, Unchecked, Nothing},
		{"99000111222333444", Unchecked, OneDigitOff},
		{"99000111222333445 • 4 x y z u w", Caution, InText},
		{"112233445566778", Unchecked, Nothing},
		{"to jest jakiś zupełnie inny człowiek", Unchecked, Nothing},
		{"😀", Unchecked, Nothing},
		{"600 700 800", Unchecked, Nothing},
		{"61 1090 1014 0000 0712 1981 2874", Unchecked, Nothing},
		{"discord.gg/abc", Unchecked, Nothing},
		{"<@&" + frogID + ">", Unchecked, Nothing},
		{"<t:" + frogID + ":R>", Unchecked, Nothing},
		{"https://discord.com/channels/" + kefirID + "/" + frogID, Accused, ByID},
		{strings.Repeat("ﷺ", 17), Unchecked, Nothing}, // is 18 letters each
		// Of longer texts, ids alone are looked up.
		{longText, Unchecked, Nothing},
		{longText + kefirID, Caution, Beside},
		{longText + nobodyID, Unchecked, Nothing},
		{longText + "żabcia2013", Unchecked, Nothing},
		{longText + riskyID, Risk, ByID},
		{longText + " 9100 0000 0000 0000 0", Accused, ByID},
		{longText + " 9100•0000•0000•0000•0 x", Caution, InText},
		{longText + "/wpis/scammers/frog1", Accused, ByID},
	} {
		if v := check(t, view, c.text, ""); v.Value != c.value || v.Reason != c.reason {
			t.Errorf("%q: %s %d, want %s %d: %+v", c.text, v.Value, v.Reason, c.value, c.reason, v.Findings)
		}
	}
}

// Both fields are one text.
func TestFields(t *testing.T) {
	view := viewOf(people())
	for _, c := range []struct {
		search, id string
		value      Value
	}{
		{"Zielony Kefir", kefirID, Trusted}, {kefirID, "Zielony Kefir", Trusted}, {"", kefirID, Trusted}, {kefirID, kefirID, Caution},
		{"", "żabcia2013", Accused}, {"nikt", "żabcia2013", Caution}, {"nikt", "unknown-unknown1", Caution}, {"", "unknown-unknown1", Accused},
		{longText, frogID, Accused}, {"zenek", nobodyID, Unchecked}, {"żabcia2013", nobodyID, Caution},
	} {
		if v := check(t, view, c.search, c.id); v.Value != c.value {
			t.Errorf("%.30q and %q: %s %d, want %s: %+v", c.search, c.id, v.Value, v.Reason, c.value, v.Findings)
		}
	}
}

// What was found is listed: each entry once, and words that are a part of longer ones not again. A caution offers the
// id that is somebody's, to be checked alone.
func TestFindings(t *testing.T) {
	view := viewOf(people())
	for _, c := range []struct {
		text  string
		want  []string
		alone string
	}{
		{kefirID + " Zielony Kefir, tomek", []string{kefirID + ": kefir1", "tomek: tomek1"}, kefirID},
		{"xX_tomek_Xx i " + nobodyID, []string{nobodyID + ":", "xX_tomek_Xx: tom1"}, nobodyID},
		{"2 9900 0111 2223 3344 48", []string{kefirID + ": kefir1"}, kefirID},
		{"bartek", []string{"bartek: bartek1 bartek2"}, ""},
		{"czy bartek to Nick?", []string{"bartek: bartek1 bartek2", "Nick: label1"}, ""},
		{"Zielony Kefir", []string{"Zielony Kefir: kefir1"}, ""},
		{kefirID, []string{kefirID + ": kefir1"}, ""},
		{frogID + " i " + kefirID, []string{frogID + ": frog1", kefirID + ": kefir1"}, ""},
		{"kto to?", nil, ""},
	} {
		v := check(t, view, c.text, "")
		var got []string
		for _, f := range v.Findings {
			one := f.Text + ":"
			for _, r := range f.Rows {
				one += " " + r.ID()
			}
			got = append(got, one)
		}
		if !slices.Equal(got, c.want) || v.Alone != c.alone {
			t.Errorf("%q: %q, alone %q, want %q, alone %q", c.text, got, v.Alone, c.want, c.alone)
		}
	}
}

// FuzzCheck: any text gets a verdict; what decides is what the rules say, whatever the text is.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"", "Zielony Kefir – " + kefirID, "<@&1>9100-0000 0000,0000/0", "&#57;%39\u3164", "@@tomek/wpis/legit/kefir1", longText, "٩٩٠٠٠١١١٢٢٢٣٣٣٤٤٤٨"} {
		f.Add(s, "")
		f.Add("x", s)
	}
	view := viewOf(people())
	f.Fuzz(func(t *testing.T, search, id string) {
		search, id = strings.ToValidUTF8(search, ""), strings.ToValidUTF8(id, "")
		v := check(t, view, search, id)
		isLegit := func(r *readmodel.Row) bool { return r.List() == events.Legit }
		switch v.Value {
		case Trusted, TrustedName:
			if len(v.Rows) == 0 || !slices.ContainsFunc(v.Rows, isLegit) || slices.ContainsFunc(v.Rows, func(r *readmodel.Row) bool { return !isLegit(r) }) {
				t.Errorf("%q, %q: %s because of %v", search, id, v.Value, v.Rows)
			}
		case Accused, Risk:
			if len(v.Rows) == 0 || slices.ContainsFunc(v.Rows, isLegit) || slices.ContainsFunc(v.Rows, (*readmodel.Row).Verified) != (v.Value == Accused) {
				t.Errorf("%q, %q: %s because of %v", search, id, v.Value, v.Rows)
			}
		case Caution:
			if !slices.ContainsFunc(v.Findings, func(f Finding) bool { return len(f.Rows) > 0 }) {
				t.Errorf("%q, %q: a caution because of nobody", search, id)
			}
		case None, Unchecked:
			if slices.ContainsFunc(v.Findings, func(f Finding) bool { return len(f.Rows) > 0 }) {
				t.Errorf("%q, %q: %s although somebody was found", search, id, v.Value)
			}
		}
	})
}
