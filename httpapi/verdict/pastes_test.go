package verdict

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/terms"
)

// The people of the pastes. Chat ids have 18 to 20 digits, as the platform's do.
const (
	frogID   = "99000060127957749488" // żabcia2013, accused
	lynxID   = "99004071905771670591" // nocny.ryś, accused
	riskyID  = "990001112223334445"   // ryzykant, on the risk list
	nitroID  = "998800112233445566"   // Tanie Nitro, a server, accused
	majaID   = "990001112223334448"   // maja1997, trusted
	joyID    = "99018151284801070687" // Kwaśny Joystick, trusted
	kacperID = "990001112223334449"   // kacper, trusted; kacperek99 is accused
	nobodyID = "111111111111111111"
	otherID  = "222222222222222222"
)

// people is a small registry. Cichy Ślimak is both accused and trusted; bartek is accused four
// times.
func people() []Entry {
	accused := func(id, chat, name string) Entry { return Entry{events.Scammers, id, chat, name, true} }
	risk := func(id, chat, name string) Entry { return Entry{events.Scammers, id, chat, name, false} }
	trusted := func(id, chat, name string) Entry { return Entry{events.Legit, id, chat, name, true} }
	return []Entry{
		accused("frog", frogID, "żabcia2013"),
		accused("lynx", lynxID, "nocny.ryś"),
		accused("kacperek", "990001112223334446", "kacperek99"),
		accused("flame", "990001112223334447", "🔥płomień🔥"),
		accused("snail", "990001112223334450", "Cichy Ślimak"),
		accused("pair", "990001112223334451", "Zły Wilk"),
		accused("comma", "990001112223334452", "Gry, konta i nitro"),
		accused("word", "990001112223334453", "oszustka"),
		risk("risky", riskyID, "ryzykant"),
		risk("mati", "990001112223334454", "xX_mati_Xx"),
		risk("doubtful", "990001112223334455", "Natalia"),
		accused("doubtless", "990001112223334456", "natalia"),
		{events.Servers, "nitro", nitroID, "Tanie Nitro", true},
		{events.Servers, "darmowe", "998800112233445567", "darmowe.nitro.pl", true},
		{events.Servers, "shop", "998800112233440000", "Sklep z kontami", false},
		trusted("maja", majaID, "maja1997"),
		trusted("joy", joyID, "Kwaśny Joystick"),
		trusted("kacper", kacperID, "kacper"),
		trusted("slug", "990001112223334457", "Cichy Ślimak"),
		trusted("mati", "990001112223334458", "xX_mati_Xx"),
		trusted("zen", "990001112223334459", "zen.on"),
		accused("bartek0", "990001112223334460", "bartek"),
		accused("bartek1", "990001112223334461", "bartek"),
		risk("bartek2", "990001112223334462", "bartek"),
		{events.Scammers, "short", "5", "Piątka", true},
		trusted("seven", "7", "Siódemka"),
	}
}

// viewOf returns a view that shows the entries.
func viewOf(all []Entry) *readmodel.View {
	r := sync.OnceValue(readmodel.NewRenderer)()
	m := readmodel.New()
	var records []readmodel.Record
	for i, e := range all {
		records = append(records, r.Render(uint64(i+1), events.Entry{
			List: e.List, EntryID: e.ID, ChatID: e.ChatID, Name: e.Name, Verified: e.Verified, ReportID: "Z-" + e.ID, ReportedAt: time.Unix(int64(i), 0),
		}))
	}
	return m.Apply(records, uint64(len(records)))
}

func reader(t testing.TB) *paste.Reader {
	t.Helper()
	s, err := terms.New()
	require.NoError(t, err)
	return paste.NewReader(paste.Config{BaseURL: "https://rejestr.example", IsWord: s.Knows})
}

func readAndDecide(t rapid.TB, rd *paste.Reader, view *readmodel.View, text, id string) Verdict {
	t.Helper()
	p := rd.Read(text, id)
	found, err := Find(context.Background(), view, &p)
	require.NoError(t, err)
	return Decide(&p, found)
}

type row struct {
	paste  string
	value  Value
	reason Reason
}

// pastes are texts as people paste them, with what the page must say.
func pastes() []row {
	var rows []row
	add := func(v Value, r Reason, texts ...string) {
		for _, text := range texts {
			rows = append(rows, row{text, v, r})
		}
	}
	// Somebody else's id under a trusted name.
	add(Caution, NotTheirs, "maja1997 "+nobodyID, nobodyID+" maja1997", "@maja1997 <@"+nobodyID+">", "maja1997, "+nobodyID,
		"maja1997\n"+nobodyID, "maja1997 (1111-1111-1111-1111-11)", "nick: maja1997 ID: "+nobodyID, "maja1997 https://discord.com/users/"+nobodyID,
		"maja1997 discord.com/users/"+nobodyID, "MAJA1997 "+nobodyID, "𝗺𝗮𝗷𝗮𝟭𝟵𝟵𝟳 "+nobodyID, "maja1997 １１１１１１１１１１１１１１１１１１",
		"<@!"+nobodyID+"> to maja1997", "mаja1997 "+nobodyID, "Kwaśny Joystick "+nobodyID, "kwasny joystick <@"+nobodyID+">")
	// A trusted name in another dress.
	add(Caution, LikeTrusted, "𝗺𝗮𝗷𝗮𝟭𝟵𝟵𝟳", "ⓜⓐⓙⓐ1997", "ＭＡＪＡ１９９７", "maja\u200b1997", "maja1997\u200b", ".maja1997", "maja1997-", "maja1997✅", "✅ maja1997",
		"maja1997#6666", "maja1997 #6666", "maja1997#0", "maja1997!", "maja1997?", "@maja1997#6666", "@@maja1997", "mаja1997", "@mаja1997,", "maja1997_", "maja.1997",
		"maja 1997", "ᴍᴀᴊᴀ1997", "Kwasny Joystick", "Kwaśny_Joystick", "KwaśnyJoystick", "kwaśny.joystick", "kаcper", "zenon", "zen_on", "mаjа1997",
		"Kwaśny Joystick.", "<:pepe:"+otherID+"> maja1997 😀")
	// A trusted name, as it is.
	add(TrustedName, ByName, "maja1997", "MAJA1997", " maja1997 ", "@maja1997", `"maja1997"`, "„maja1997”", "'maja1997'", "`maja1997`", "**maja1997**", "(maja1997)",
		"<maja1997>", `"@maja1997"`, "nick: maja1997", "Nick maja1997", "użytkownik @maja1997", "dc maja1997", "nazwa użytkownika: maja1997", "nick to maja1997",
		"Kwaśny Joystick", "Kwaśny  Joystick", "kwaśny joystick", "maja1997, kacper", "maja1997, nikt", "maja1997,", "kacper", "zen.on", "maja1997\nnikt")
	// A trusted person's id.
	add(Trusted, ByID, majaID, "<@"+majaID+">", "<@!"+majaID+">", "https://discord.com/users/"+majaID, "discord.com/users/"+majaID, "ID: "+majaID, "id"+majaID,
		"9901-8151-2848-0107-0687", "9901 8151 2848 0107 0687", "9901.8151.2848.0107.0687", "9901_8151_2848_0107_0687", "9901,8151,2848,0107,0687", "9901'8151'2848'0107'0687",
		"maja1997 "+majaID, "𝗺𝗮𝗷𝗮𝟭𝟵𝟵𝟳 "+majaID, majaID+" nikt taki", majaID+" "+joyID, majaID+", "+joyID,
		"Cichy Ślimak 990001112223334457", "xX_mati_Xx 990001112223334458", "7", "<@"+majaID+"> to ktoś?")
	// A trusted person's id under a name that only looks like theirs.
	add(Caution, LikeTrusted, "Maja.1997 <@"+majaID+">", "Kwasny Joystick / "+joyID, "mаja1997 "+majaID, "maja 1997 "+majaID)
	// A trusted person's id under somebody else's name.
	add(Caution, OtherName, "nocny.ryś "+majaID, majaID+" nocny.ryś", "nocny.rys "+majaID, "@nocny.ryś <@"+majaID+">", "maja1997 "+joyID, "czy <@"+majaID+"> to nocny.ryś?",
		"maja1997, żabcia2013, "+majaID, "bartek "+majaID)
	add(Caution, OtherID, majaID+" "+nobodyID, nobodyID+", "+majaID, "maja1997 "+majaID+" "+nobodyID, "<@"+majaID+"> <@"+nobodyID+">")
	add(Caution, MaybeID, "9901 8151 2848 0107 0687 12", "x"+majaID)
	// An accused id, however it is written and whatever stands beside it.
	add(Accused, ByID, frogID, "9900-4071-9057-7167-0591", "9900 4071 9057 7167 0591", "9900.4071.9057.7167.0591", "9900_4071_9057_7167_0591", "9900,4071,9057,7167,0591",
		"9900, 4071, 9057, 7167, 0591", "9900’4071’9057’7167’0591", "9900\u00a04071\u00a09057\u00a07167\u00a00591", "990 040 719 057 716 705 91", "id-9900-4071-9057-7167-0591",
		"id "+lynxID, "id"+lynxID, "ID:"+lynxID, "User ID: "+lynxID, "("+lynxID+")", lynxID+",", "<@"+lynxID+">", "<@!"+lynxID+">", "&lt;@"+lynxID+"&gt;",
		"https://discord.com/users/"+lynxID, "discord.com/users/"+lynxID, "www.discordapp.com/users/"+lynxID+"?x=1", "discord://-/users/"+lynxID,
		"[profil](https://discord.com/users/"+lynxID+")", "to on: https://discord.com/users/"+lynxID+".", "https://discordlookup.com/user/"+lynxID,
		"https://discord.com/channels/"+nitroID+"/"+otherID, "discord.com/channels/"+nitroID, "maja1997 "+lynxID, lynxID+" maja1997", majaID+" "+lynxID, lynxID+" "+nobodyID,
		nobodyID+" "+otherID+" "+lynxID, "nocny.ryś "+lynxID, "żabcia2013 (9900 0060 1279 5774 9488)", "agent 007 9900 0060 1279 5774 9488", "user"+lynxID, "9900\u200b4071905771670591",
		"９９００４０７１９０５７７１６７０５９１", "5", "<@"+frogID+"> to oszust?", "https://steamcommunity.com/profiles/"+lynxID, "ryzykant "+lynxID)
	add(Risk, ByID, riskyID, "<@"+riskyID+">", riskyID+" "+nobodyID, "maja1997 "+riskyID, "nocny.ryś "+riskyID)
	// An accused name.
	add(Accused, ByName, "żabcia2013", "ŻABCIA2013", "  żabcia2013  ", "@żabcia2013", "@@żabcia2013", "żabcia2013#1234", "żabcia2013,", "żabcia2013.", "żabcia2013!", "żabcia2013…",
		`"żabcia2013"`, "„żabcia2013”", "`żabcia2013`", "**żabcia2013**", "(żabcia2013)", "<żabcia2013>", "- żabcia2013", "żabcia2013 😀", "👩‍👧 żabcia2013 ❤️", "\u200bżabcia2013\u200f",
		"żab\u00adcia2013", "z\u0307abcia2013", "𝗻𝗼𝗰𝗻𝘆.𝗿𝘆𝘀\u0301", `"@nocny.ryś"`, "(@nocny.ryś)", "„@nocny.ryś”", "*@nocny.ryś*", "`@nocny.ryś`", "nick: nocny.ryś",
		"dc nocny.ryś", "nick to nocny.ryś", "nazwa użytkownika: nocny.ryś", "server Tanie Nitro", "serwer: Tanie Nitro!", "tanie  nitro", "zenek_a, zenek_b, zenek_c, nocny.ryś",
		"nocny.ryś, żabcia2013", "zenek_a, nocny.ryś", "nocny.ryś / żabcia2013", "nocny.ryś|zenek", "nocny.ryś\nżabcia2013", "maja1997; żabcia2013", "żabcia2013, maja1997",
		"@nocny.ryś @zenek", "oszukał mnie @nocny.ryś na 200 zł", "uwaga na @nocny.ryś!", "🔥płomień🔥", "Gry, konta i nitro", "natalia", "Natalia", "bartek",
		"Tanie Nitro https://discord.gg/abcDEF", "darmowe.nitro.pl", "&quot;nocny.ryś&quot;", "bartek, ryzykant", "żabcia2013 #1234")
	add(Risk, ByName, "ryzykant", "@ryzykant", "Sklep z kontami", "serwer: Sklep z kontami", "ryzykant, nikt")
	// An accused name with an id that nobody has reported.
	add(Caution, OtherAccount, "nocny.ryś "+nobodyID, nobodyID+" nocny.ryś", "żabcia2013 <@"+nobodyID+">", "ryzykant "+nobodyID, "zabcia2013 "+nobodyID, "Cichy Ślimak "+nobodyID,
		"nocny.ryś, maja1997, "+nobodyID, "@nocny.ryś "+majaID+" "+nobodyID, "oszukał mnie nocny.ryś "+nobodyID)
	// Neighbors of an address are not swallowed with it.
	of := func(id string) string { return "https://discord.com/users/" + id }
	add(Accused, ByID, of(lynxID)+" "+of(majaID), of(majaID)+" "+of(lynxID), of(lynxID)+","+of(majaID), of(majaID)+","+of(lynxID), of(lynxID)+"|"+of(majaID), of(lynxID)+" i "+of(majaID),
		of(lynxID)+" "+of(nobodyID), of(majaID)+"/ "+lynxID, of(majaID)+"? "+lynxID, of(majaID)+"?x="+lynxID, of(majaID)+"|"+lynxID, of(majaID)+"#"+lynxID, majaID+" "+lynxID+"@discord.com",
		majaID+" https://discord.gg/"+lynxID, lynxID+",discord.gg/abc", lynxID+";https://discord.gg/abc", "nr9900 4071 9057 7167 0591", "9900—4071—9057—7167—0591", "9900–4071–9057–7167–0591")
	add(Caution, OtherName, of(majaID)+"/ nocny.ryś", of(majaID)+"? nocny.ryś", of(majaID)+",nocny.ryś", "[nocny.ryś]("+of(majaID)+")", "nocny.ryś,"+of(majaID), "nocny.ryś("+of(majaID)+")",
		"zły wilk/24 "+majaID, majaID+" nocny.ryś,discord.gg/abc", majaID+" nocny.ryś,https://wp.pl")
	add(Caution, OtherID, of(nobodyID)+" "+of(majaID), of(majaID)+" "+of(nobodyID), of(nobodyID)+","+of(majaID))
	add(Caution, NotTheirs, "[maja1997]("+of(nobodyID)+")", "maja1997,"+of(nobodyID), of(nobodyID)+",maja1997", "maja1997("+of(nobodyID)+")", of(nobodyID)+"/ maja1997")
	add(Caution, MaybeID, "https://nitro-free.gift/?u="+majaID, "https://discord.com.login-page.ru/users/"+majaID, "https://roblox.com/users/"+majaID)
	add(Accused, ByName, "nocny.ryś,discord.gg/x", "nocny.ryś|discord.gg/x", "nocny.ryś;https://wp.pl", "nocny.ryś,www.wp.pl", "1. nocny.ryś", "ksywka: nocny.ryś", "nick oszusta: nocny.ryś")
	add(Caution, LikeTrusted, "maja1997 <:v:"+otherID+">", "&#109;aja1997")
	add(Unchecked, Unknown, "DE89 3704 0044 0532 0130 00", "378282246310005", "600 700 800!", "kontakt: 600 700 800", "185.12.1.1", "https://185.12.1.1/login",
		"NITRO-FREE[DOT]GIFT", "STEAM_0:1:12345", "#ogólny", "@everyone", "nocny.gg/abc", "//nagroda.pl/x")
	// A name that accused and trusted persons share.
	add(Caution, Shared, "Cichy Ślimak", "cichy ślimak", "@Cichy Ślimak", "xX_mati_Xx", "xX_mati_Xx!", "Cichy Ślimak, ryzykant", "Cichy Ślimak, maja1997")
	// A name like an accused's.
	add(Caution, LikeAccused, "zabcia2013", "nocny.rys", "nocny ryś", "nocny_ryś", "nocnyryś", "nocny-ryś", "żabcia 2013", "Żabcia_2013", "nосny.ryś", "TanieNitro", "tanie_nitro",
		"darmowenitropl", "DARMOWE-NITRO-PL", "zly wilk", "ZłyWilk", "zabcia2013, nikt", "ｚabcia2013", "zabcia2013, ryzykant", "nocny ryś 😀")
	// A word of a sentence.
	add(Caution, InSentence, "czy ktoś zna nocny.ryś?", "Uwaga na nocny.ryś!", "nocny.ryś - oszust", "nocny.ryś żabcia2013", "nocny.ryś i żabcia2013", "nocny.ryś oraz ktoś",
		"nocny.ryś\tżabcia2013", "znacie Zły Wilk?", "oszukał mnie Zły Wilk wczoraj", "czy maja1997 jest ok", "server to Tanie Nitro chyba",
		"wczoraj napisał do mnie niejaki nocny.ryś i chciał kod na telefon")
	// What the registry does not know.
	many := make([]string, 25)
	for i := range many {
		many[i] = "nikt" + string(rune('a'+i))
	}
	add(Unchecked, Unknown, "600700800", "48600700800", "+48 600 700 800", "600 700 800", "600-700-800", "tel. 600 700 800", "tel: 600700800", "numer telefonu 600 700 800", "(+48) 600 700 800",
		"61 1090 1014 0000 0712 1981 2874", "nr konta 61 1090 1014 0000 0712 1981 2874", "PL61109010140000071219812874", "PL61 1090 1014 0000 0712 1981 2874", "GB29 NWBK 6016 1331 9268 19",
		"4111 1111 1111 1111", "4111111111111111", "karta 5500 0000 0000 0004", "oszust@example.org", "mail: oszust@example.org", "jan.kowalski@wp.pl", "nagroda.example", "discorcl.gift/nitro",
		"nitro-free[.]gift", "hxxps://nitro-free.gift/abc", "https://tani-sklep.example/konto", "www.tani-sklep.pl", "tani-sklep.pl", "https://steamcommunity.com/profiles/76561198000000000",
		"steamcommunity.com/id/ktos", "https://www.facebook.com/profile.php?id=100001234567890", "instagram.com/ktos", "t.me/ktos", "https://discord.gg/abcDEF", "discord.gg/abcDEF",
		"https://discord.com/invite/abcDEF", ".gg/abcDEF", "dsc.gg/nitro", "<#"+otherID+">", "<@&"+otherID+">", "https://discord.com/channels/@me/"+otherID, "nikt, nagroda.example")
	add(Unchecked, Sentence, "to jest ta oszustka", "czy to jest bezpieczny sposób zapłaty", "ktoś mi pisze że wygrałem telefon", "jak sprawdzić czy serwer jest prawdziwy i czy warto tam kupować")
	// Nobody.
	add(None, Nobody, "nikt taki", "nikt, żaden", "😀", "żabcia", "ryś", "maja", "jan.kowalski", "nikt", "@", "!!!", "id", "nick", "12345678901234", strings.Join(many, ","))
	add(None, ByID, nobodyID, "<@"+nobodyID+">", nobodyID+" "+otherID, "nikt "+nobodyID, "1111-1111-1111-1111-11")
	return rows
}

// Every paste gets the verdict of the rules, whatever it looks like.
func TestPastes(t *testing.T) {
	view, cases, rd := viewOf(people()), pastes(), reader(t)
	if len(cases) < 200 {
		t.Fatalf("%d pastes", len(cases))
	}
	for _, c := range cases {
		if v := readAndDecide(t, rd, view, c.paste, ""); v.Value != c.value || v.Reason != c.reason {
			t.Errorf("%q: %s %d, want %s %d: %+v", c.paste, v.Value, v.Reason, c.value, c.reason, v.Subjects)
		}
	}
}
