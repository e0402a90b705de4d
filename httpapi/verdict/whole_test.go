package verdict

import (
	"strings"
	"testing"

	"example.org/registry/httpapi/paste"
)

// What the rule that nothing remains unexplained makes of a text.
func TestWholeText(t *testing.T) {
	view, rd := viewOf(people()), reader(t)
	for _, c := range []struct {
		text, id string
		value    Value
		reason   Reason
	}{
		{"https://discordapp.pl/users/" + nobodyID + " " + majaID, "", Caution, MaybeID},
		{"https://discord.com/users/" + majaID + "/../" + nobodyID, "", Caution, MaybeID},
		{"https://discord.com/users/" + majaID + "/../" + nobodyID, majaID, Caution, MaybeID},
		{majaID + " profil" + nobodyID, "", Caution, MaybeID},
		{majaID + " 111111111 111111111", "", Caution, OtherID},
		{"Gry, konta i nitro i " + majaID, "", Caution, OtherName},
		{"Czy Zły Wilk to ten sam co <@" + majaID + ">?", "", Caution, OtherName},
		{majaID + " 600 700 800", "", Caution, Beside},
		{majaID + " https://wp.pl", "", Caution, Beside},
		{majaID + " <t:1700000000:R>", "", Caution, Beside},
		{majaID + " — wczoraj o 21:37", "", Trusted, ByID},
		{"maja1997 — Today at 9:37 PM\n" + majaID, "", Trusted, ByID},
		{"pytam o maja1997, id " + majaID, "", Trusted, ByID},
		{"xX_mati_Xx 990001112223334458", "", Trusted, ByID},
		{"Zły WilkBOT — Yesterday at 9:37 PM\n" + majaID, "", Caution, OtherName},
		{"nocny.ryśAPP — Today at 9:37 PM\n" + majaID, "", Caution, OtherName},
		{"Zły WilkBOT — Yesterday at 9:37 PM", "", Caution, InSentence},
		{"maja1997BOT — Yesterday at 9:37 PM\n" + majaID, "", Caution, LikeTrusted},
		{"maja1997 M " + majaID, "", Caution, Beside},
		{"x maja1997 " + majaID, "", Caution, Beside},
		{"(PL) maja1997\n" + majaID, "", Caution, Beside},
		{"<@" + majaID + "> Kwaśny Joystick Xx " + joyID, "", Caution, Beside},
		{"M maja1997 " + majaID, "", Caution, Beside},
		{"To maja1997 i " + majaID, "", Trusted, ByID},
		{"Czy maja1997 to <@" + majaID + ">?", "", Trusted, ByID},
		{"zen.on 990001112223334459", "", Trusted, ByID},
		{"maja1997 M", "", Caution, InSentence},
		{"nikt M", "", None, Nobody},
		{"nocny.ryś", "", Accused, ByName},
		{"", "nocny.ryś", Accused, ByName},
		{"nikt", "nocny.ryś", Accused, ByName},
		{"nocny.ryś77", majaID, Caution, Beside},
		{majaID, "nocny.ryś", Caution, OtherName},
		{"9900407190 5771670591", "", Accused, ByID},
		{"nr 2, 9900 4071 9057 7167 0591", "", Accused, ByID},
		{"oszukał mnie Zły Wilk na 200 zł", "", Caution, InSentence},
		{"oszukał mnie zly wilk na 200 zł", "", Caution, InSentence},
		{"oszukał mnie „Zły Wilk” na 200 zł", "", Accused, ByName},
		{"oszukał mnie @nocny.ryś na 200 zł", "", Accused, ByName},
		{"Zły Wilk — wczoraj o 21:37\nsiema", "", Accused, ByName},
		{"[21:37] nocny.ryś: siema", "", Caution, InSentence},
		{nobodyID + " Zły Wilk (kto) — wczoraj o 21:37", "", Caution, OtherAccount},
		{"600700800 Tanie Nitro", "", Accused, ByName},
		{nobodyID + " darmowe.nitro.pl", "", Caution, OtherAccount},
		{"darmowe.nitro.pl#0 " + majaID, "", Caution, OtherName},
		{"płomień", "", Accused, ByName},
		{"mailto:jan@example.com", "", Unchecked, Unknown},
		{"<@&" + lynxID + ">", "", Unchecked, Unknown},
		{"</kup:" + majaID + ">", "", Unchecked, Unknown},
		{"https://discord.com/channels/" + majaID + "/1", "", Unchecked, Unknown},
		{"https://discord.com/channels/" + nitroID + "/1", "", Accused, ByID},
		{"https://rejestr.example/wpis/scammers/lynx", "", Accused, ByID},
		{"https://rejestr.example/wpis/legit/maja", "", Trusted, ByID},
		{"https://evil.example/wpis/legit/maja", "", Caution, MaybeID},
		{"https://rejestr.example/?search=nocny.ry%C5%9B", "", Accused, ByName},
		{majaID + " https://rejestr.example/?search=nocny.ry%C5%9B&/ x", "", Caution, OtherName},
		{majaID + " https://rejestr.example/?search=nikt&/ x", "", Caution, Beside},
		{"Z-bartek1", "", Accused, ByID},
		{"to jest ta oszustka", "", Unchecked, Sentence},
		{"oszustka " + majaID, "", Caution, OtherName},
		{strings.Repeat("<@1>", 21) + majaID, "", Caution, OtherID},
		{majaID + " 50", "", Caution, MaybeID},
		{strings.Repeat("x", paste.MaxText+1), "", Unchecked, TooMany},
		{strings.Repeat("ﷺ", 17), "", Unchecked, TooMany}, // is 18 letters each
		{"nikt taki", "", None, Nobody},
		{nobodyID, "", None, ByID},
		{nobodyID + " nikt", "", None, ByID},
	} {
		if v := readAndDecide(t, rd, view, c.text, c.id); v.Value != c.value || v.Reason != c.reason {
			t.Errorf("%q beside %q: %s %d, want %s %d", c.text, c.id, v.Value, v.Reason, c.value, c.reason)
		}
	}
}
