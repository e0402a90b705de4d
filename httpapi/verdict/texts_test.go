package verdict

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
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

func reader() *paste.Reader { return paste.NewReader(paste.Config{BaseURL: "https://rejestr.example"}) }

// check is the verdict of a text where ranked search finds nothing.
func check(t rapid.TB, rd *paste.Reader, view *readmodel.View, text, id string) Verdict {
	t.Helper()
	p := rd.Read(text, id)
	found, err := Find(context.Background(), view, &p)
	require.NoError(t, err)
	v := Decide(rd, &p, found)
	v.Rank(&readmodel.RankedPage{})
	return v
}

// manyIDs are ids on no list.
func manyIDs(from, to int) string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(700_000_000_000_000+i*1_000_003))
	}
	return strings.Join(all, "•")
}

// Texts, and their verdicts as the rules give them.
func TestTexts(t *testing.T) {
	const t18 = "9900 0111 2223 3344 48"
	rd, view := reader(), viewOf(people())
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
		{t18 + ", " + t18, Trusted, ByID},
		{"https://discord.com/users/" + kefirID + "/", Trusted, ByID},
		{"canary.discord.com/users/" + kefirID, Trusted, ByID},
		{"ID: " + kefirID, Trusted, ByID},
		{"Discord ID " + kefirID, Trusted, ByID},
		{"Zielony Kefir " + kefirID, Trusted, ByID},
		{kefirID + "\nzielony   kefir", Trusted, ByID},
		{"@Zielony Kefir " + kefirID, Trusted, ByID},
		{"nick: Zielony Kefir, ID: " + kefirID, Trusted, ByID},
		{"Zielony Kefir (ID: " + t18 + ")", Trusted, ByID},
		{"Zielony Kefir(" + kefirID + ")", Trusted, ByID},
		{kefirID + " (Zielony Kefir)", Trusted, ByID},
		{kefirID + "|Zielony Kefir", Trusted, ByID},
		{kefirID + " (Zielony Kefir)\n" + t18, Trusted, ByID},
		{"Agent 7 " + agentID, Trusted, ByID},
		{"Maja (PL) - " + agentID2, Trusted, ByID},
		{"bartek 990001112223334466", Trusted, ByID},
		{"990001112223334465", Trusted, ByID},
		{"<@!990001112223334465>", Trusted, ByID},
		// … and with anything else.
		{"<@990001112223334465>", Caution, OtherName}, // an accused's name, literally
		{"nick: <@990001112223334465>", Caution, OtherName},
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
		{"Agent 7 " + kefirID, Caution, OtherName},
		{"żabcia2013 " + kefirID, Caution, OtherName},
		{"◇Edmund◇ " + kefirID, Caution, OtherName},
		{"🔥🔥🔥, ID: " + kefirID, Caution, OtherName},
		{"Żelazny i Szczupak " + kefirID, Caution, Beside},
		{kefirID + " " + agentID, Caution, SeveralIDs},
		{kefirID + " " + nobodyID, Caution, OtherID},
		{"https://discord.com/users/" + kefirID + "?x=1", Caution, MaybeID},
		{"https://discord.com/users/" + kefirID + "/../" + nobodyID, Caution, MaybeID},
		{"https://nagroda.pl/users/" + kefirID, Caution, MaybeID},
		{"x" + kefirID, Caution, MaybeID},
		{"٩٩٠٠٠١١١٢٢٢٣٣٣٤٤٤٨", Caution, MaybeID},
		{"2 " + t18, Caution, MaybeID},
		{"https://rejestr.example/?id=" + kefirID, Caution, MaybeID},
		// A trusted person's name.
		{"Zielony Kefir", TrustedName, ByName},
		{"@zielony  KEFIR", TrustedName, ByName},
		{"nick: Zielony Kefir", TrustedName, ByName},
		{"xX_tomek_Xx", TrustedName, ByName},
		{"Maja (PL)", TrustedName, ByName},
		{"112358132134558914", TrustedName, ByName},
		{"https://rejestr.example/wpis/legit/kefir1", TrustedName, ByID},
		{"Z-kefir1", TrustedName, ByID},
		{"Zielony Kefir✅", Caution, InSentence},
		{"Zielony Kefir#1234", Caution, InSentence},
		{"Zielony\nKefir", TrustedName, ByName},
		{"Zielоny Kefir", Caution, LikeTrusted}, // Cyrillic
		{"czy Zielony Kefir", Caution, InSentence},
		{"https://rejestr.example/wpis/legit/kefir1 ok", Caution, MaybeID},
		{"https://zly.example/wpis/legit/kefir1", Caution, MaybeID},
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
		{"4123456789012 to oszust", Caution, MaybeID},
		{"zgłoszenie z-frog1", Caution, MaybeID},
		{"910 x 00000000000000 " + "91 000000000000000 5", Caution, MaybeID},
		// An accused's name.
		{"żabcia2013", Accused, ByName},
		{"ŻABCIA2013", Accused, ByName},
		{"@żabcia2013", Accused, ByName},
		{"nick: żabcia2013", Accused, ByName},
		{"dc nick @żabcia2013", Accused, ByName},
		{"żabcia2013, Zielony Kefir", Accused, ByName},
		{"Zielony Kefir\nżabcia2013", Accused, ByName},
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
		{"bartek, żabcia2013", Accused, ByName},
		{"bartek, Zielony Kefir", Caution, Shared},
		{"Zielony Kefir,", Caution, InSentence},
		{"„żabcia2013”", Caution, InSentence},
		{"żabcia2013.", Caution, InSentence},
		{"żabcia2013,", Caution, InSentence},
		{"zabcia2013", Caution, LikeAccused},
		{"Edmund", Caution, LikeAccused},
		{"Cyprian", Caution, LikeAccused},
		{"Sklep Tani", Caution, LikeAccused},
		{"Kodło", Caution, LikeAccused},
		{"żabcia2013 " + nobodyID, Caution, OtherAccount},
		{nobodyID + "\nZielony Kefir", Caution, NotTheirs},
		{"oszukał mnie Żelazny Szczupak na 200 zł", Caution, InSentence},
		{"ŻELAZNYSZCZUPAK", Caution, LikeAccused},
		{"🔥🔥🔥 proszę o pomoc", Caution, InSentence},
		{"to jest Radio 21:37 czy nie", Caution, InSentence},
		{"oto sześć słów ma to imię tu właśnie", Caution, InSentence},
		{"Maja | PL", Caution, LikeTrusted},
		{"Szczupak Żelazny", None, Nobody}, // but for ranked search
		// Nobody.
		{nobodyID, None, ByID},
		{"<@" + nobodyID + ">", None, ByID},
		{"ID: " + nobodyID + ",", None, ByID},
		{"zenek.nowak", None, Nobody},
		{"@zenek", None, Nobody},
		{"nazwa: zenek 12", None, Nobody},
		{"zenek " + nobodyID, None, ByID},
		{"zenek (ID: " + nobodyID + ")", None, ByID},
		{"наташа", None, Nobody},
		// Neither.
		{"", Unchecked, NotLiteral},
		{nobodyID + " " + otherID, Unchecked, NotLiteral},
		{"99000111222333444", Unchecked, OneDigitOff},
		{"99000111222333445 • 4 x y z u w", Caution, MaybeID},
		{"112233445566778", Unchecked, NotLiteral},
		{"to jest jakiś zupełnie inny człowiek", Unchecked, NotLiteral},
		{"zenek!", Unchecked, NotLiteral},
		{"nаtasza", Unchecked, NotLiteral}, // Cyrillic
		{"nikt, żaden", Unchecked, NotLiteral},
		{"😀", Unchecked, NotLiteral},
		{"zenek\nnowak", Unchecked, NotLiteral},
		{"kuba.com", Unchecked, Unknown},
		{"sklep.онлайн", Unchecked, Unknown},
		{"600 700 800", Unchecked, Unknown},
		{"61 1090 1014 0000 0712 1981 2874", Unchecked, Unknown},
		{"jan@wp.com", Unchecked, Unknown},
		{"discord.gg/abc", Unchecked, Unknown},
		{"@everyone", Unchecked, Unknown},
		{"#ogólny", Unchecked, Unknown},
		{"21:37", Unchecked, Unknown},
		{"<@&" + frogID + ">", Unchecked, Unknown},
		{"<t:" + frogID + ":R>", Unchecked, Unknown},
		{"https://discord.com/channels/" + kefirID + "/" + frogID, Unchecked, Unknown},
		{strings.Repeat("x", paste.MaxText+1), Unchecked, TooMany},
		{strings.Repeat("ﷺ", 17), Unchecked, TooMany}, // is 18 letters each
	} {
		if v := check(t, rd, view, c.text, ""); v.Value != c.value || v.Reason != c.reason {
			t.Errorf("%q: %s %d, want %s %d: %+v", c.text, v.Value, v.Reason, c.value, c.reason, v.Findings)
		}
	}
}

// Both fields are one text.
func TestFields(t *testing.T) {
	rd, view := reader(), viewOf(people())
	for n, want := range map[int]Reason{paste.MaxIDs: NotLiteral, paste.MaxIDs + 1: TooMany} {
		if v := check(t, rd, view, manyIDs(0, 10), manyIDs(10, n)); v.Value != Unchecked || v.Reason != want {
			t.Errorf("%d ids: %s %d", n, v.Value, v.Reason)
		}
	}
	for _, c := range []struct {
		text, id string
		value    Value
	}{
		{"Zielony Kefir", kefirID, Trusted}, {kefirID, "Zielony Kefir", Trusted}, {"", kefirID, Trusted}, {kefirID, kefirID, Trusted},
		{"", "żabcia2013", Accused}, {"nikt", "żabcia2013", Caution}, {"nikt", "unknown-unknown1", Accused}, {"", "unknown-unknown1", Accused},
		{strings.Repeat("x", 300), frogID, Accused}, {"zenek", nobodyID, None}, {"żabcia2013", nobodyID, Caution},
	} {
		if v := check(t, rd, view, c.text, c.id); v.Value != c.value {
			t.Errorf("%.30q and %q: %s %d, want %s: %+v", c.text, c.id, v.Value, v.Reason, c.value, v.Findings)
		}
	}
}
