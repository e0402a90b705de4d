package verdict

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
)

// alphabets are the ways to write the digits 0 to 9 without decimal digits of ASCII alone.
func alphabets() [][]string {
	each := func(digits string) []string { return strings.Split(digits, "") }
	with := func(after string) (all []string) {
		for _, d := range each("0123456789") {
			all = append(all, d+after)
		}
		return all
	}
	return [][]string{
		each("0123456789"), each("０１２３４５６７８９"), each("٠١٢٣٤٥٦٧٨٩"), each("𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗"), each("⁰¹²³⁴⁵⁶⁷⁸⁹"), each("⓪①②③④⑤⑥⑦⑧⑨"),
		each("⓿❶❷❸❹❺❻❼❽❾"), each("🄋➀➁➂➃➄➅➆➇➈"), each("🄌➊➋➌➍➎➏➐➑➒"), each("⓪⓵⓶⓷⓸⓹⓺⓻⓼⓽"), each("߀߁߂߃߄߅߆߇߈߉"),
		with("\ufe0f\u20e3"), with("\u20e3"), with("\u0336"), with("\u20dd"), with("\u200b"), each("O123456789"),
	}
}

// drawDigits writes an id in an alphabet, in groups with anything but letters between them.
func drawDigits(t *rapid.T, id string) string {
	alphabet := rapid.SampledFrom(alphabets()).Draw(t, "alphabet")
	between := rapid.OneOf(
		rapid.SampledFrom([]string{" ", "-", ".", "\n\n\n\n", "    ", ":", "+", "*", "<>", "> <", " • ", "😀", "—", "…", "=", "~", "|", "#", "@", "&", ") ", "(", ", ", " / ", "\\", "!", "?", "\t", "\u2028", "\""}),
		rapid.StringOfN(rapid.SampledFrom([]rune(" -._,:;/\\+*<>()[]{}|~=!?#&^$\n\t•·…—‹›«»😀")), 1, 6, -1),
	).Draw(t, "between")
	cuts := rapid.SliceOfN(rapid.IntRange(1, len(id)-1), 0, 6).Draw(t, "cuts")
	var b strings.Builder
	for i, d := range id {
		if slices.Contains(cuts, i) {
			b.WriteString(between)
		}
		b.WriteString(alphabet[d-'0'])
	}
	return b.String()
}

// drawWords writes a name with something other than white space between its words.
func drawWords(t *rapid.T, name string) string {
	return strings.Join(strings.Fields(name), rapid.SampledFrom([]string{
		" ", "  ", "\n", " 😀 ", "😀", "/", " / ", " • ", "•", " · ", "+", " + ", ":", ": ", " 21:37 ", " [21:37] ", " — ", "_", ".", ", ", " | ", "; ", " \" ", "~", "=", "*", " <:pepe:" + otherID + "> ", " <t:1:R> ",
		" <@" + majaID + "> ", " " + majaID + " ", "🔥🔥", " (", ") ", " <3 ", "&", "\u200b \u200b",
	}).Draw(t, "between words"))
}

// slots are texts that somebody would paste, with a place for something more. Of a trusted person
// or of nobody.
func trustedSlots() []string {
	of := "https://discord.com/users/" + majaID
	return []string{
		"{} " + majaID, majaID + " {}", "maja1997 {} " + majaID, "maja1997 " + majaID + " {}", majaID + "\n{}\nmaja1997", "Kwaśny {} Joystick " + joyID, "maja1997 {} ! " + majaID, "<@" + majaID + "> {}", "({}) <@" + majaID + ">",
		of + "?u={}", of + "#{}", of + " {}", of + "/{}", of + "?a=b&u={}#x", "{} " + of, "https://rejestr.example/wpis/legit/maja#{}", "https://rejestr.example/wpis/legit/maja?x={}", "https://rejestr.example/wpis/legit/maja/{}",
		"https://discord.com/channels/" + otherID + "?u={} " + majaID, "https://discord.com/channels/@me?u={} " + majaID, "#{} " + majaID, "<id:{}> " + majaID, "</{}:1> " + majaID, "‹/{}:1> " + majaID,
		"nick {} id " + majaID, "ID: " + majaID + " {}", "1. {}\n2. " + majaID, "1) {} " + majaID, "[21:37] {}: " + majaID, "21:37 {} 21:38 " + majaID, "{} — wczoraj o 21:37\n" + majaID, "12.05.2026 {} " + majaID,
	}
}

func neutralSlots() (all []string) {
	for _, s := range trustedSlots() {
		s = strings.NewReplacer(majaID, "nikt", joyID, "nikt", "wpis/legit/maja", "nikt", "Kwaśny", "nikt", "Joystick", "nikt", "maja1997", "nikt", otherID, "1").Replace(s)
		all = append(all, s)
	}
	return append(all, "{}", "<:pepe:{}>", "uwaga {}", "oszukał mnie {} na zł")
}

func fill(slot, thing string) string { return strings.Replace(slot, "{}", thing, 1) }

// An accused id is found in any grouping, in any digits, and wherever it stands.
func TestAccusedIDHidesNowhere(t *testing.T) {
	rd, view := reader(t), viewOf(people())
	rapid.Check(t, func(t *rapid.T) {
		thing := rapid.OneOf(rapid.Custom(func(t *rapid.T) string {
			return drawDigits(t, rapid.SampledFrom([]string{frogID, lynxID, "990001112223334446", riskyID}).Draw(t, "id"))
		}), rapid.Map(rapid.SampledFrom([]string{"", "-", "~", "=", "…", "]", "/", "\u200b", "#", "?"}), func(after string) string {
			return "https://rejestr.example/wpis/scammers/lynx" + after
		})).Draw(t, "thing")
		text := fill(rapid.SampledFrom(append(trustedSlots(), neutralSlots()...)).Draw(t, "slot"), thing)
		if v := readAndDecide(t, rd, view, text, ""); v.Value != Accused && v.Value != Risk && v.Value != Caution {
			t.Fatalf("%q: %s %d", text, v.Value, v.Reason)
		}
	})
}

// An accused name of several words is found with anything between them, and wherever it stands.
func TestAccusedNameHidesNowhere(t *testing.T) {
	rd, view := reader(t), viewOf(append(people(), Entry{events.Scammers, "nick", "990001112223334490", "Nick", true},
		Entry{events.Scammers, "slash", "990001112223334491", "a/ż•ć", true}, Entry{events.Scammers, "four", "990001112223334492", "Zły Stary Wilk", false}))
	rapid.Check(t, func(t *rapid.T) {
		thing := drawWords(t, rapid.SampledFrom([]string{"Zły Wilk", "Tanie Nitro", "zly wilk", "Sklep z kontami", "nocny.ryś", "Zły Stary Wilk", "a/ż•ć", "żabcia2013"}).Draw(t, "name"))
		text := fill(rapid.SampledFrom(append(trustedSlots(), neutralSlots()...)).Draw(t, "slot"), thing)
		if v := readAndDecide(t, rd, view, text, ""); v.Value != Accused && v.Value != Risk && v.Value != Caution {
			t.Fatalf("%q: %s %d", text, v.Value, v.Reason)
		}
	})
}

// An accused whose name is a label or a word of the language makes nothing clear or green.
func TestAccusedNameThatIsALabel(t *testing.T) {
	rd, view := reader(t), viewOf(append(people(), Entry{events.Scammers, "nick", "990001112223334490", "Nick", true}, Entry{events.Servers, "server", "990001112223334493", "serwer", true}))
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"nick", "Nick", "NICK", "serwer", "Serwer", "oszustka", "nick:", "serwer -"}).Draw(t, "word")
		text := fill(rapid.SampledFrom(append(trustedSlots(), neutralSlots()...)).Draw(t, "slot"), word)
		if v := readAndDecide(t, rd, view, text, ""); v.Value == Trusted || v.Value == TrustedName || v.Value == None {
			t.Fatalf("%q: %s %d", text, v.Value, v.Reason)
		}
	})
}

// Whatever is foreign beside a trusted person's id and name makes the answer not green, wherever it
// stands.
func TestForeignThingIsNotGreen(t *testing.T) {
	rd, view := reader(t), viewOf(people())
	rapid.Check(t, func(t *rapid.T) {
		thing := rapid.OneOf(
			rapid.SampledFrom([]string{"evil.pl", "https://evil.pl", "https://evil.com/https://discord.com/users/" + majaID, "evil.com/users/" + majaID, "evil.pl-to", "evil.pl.jest", "https://rejestr.example/wpis/legit/nikt", "evil.com*https://discord.com/users/" + majaID,
				"evil://discord.com/users/" + majaID, "https://discord.com@evil.com/users/" + majaID, "jan@wp.pl", "discord.gg/abc", "600 700 800", "+48 600-700-800", "4111 1111 1111 1111", "t.me/ktos", "<@&" + otherID + ">", "<t:" + majaID + ":R>", "<id:" + majaID + ">", "99a0001112223334499", "990001112ł223334499",
				"<@" + nobodyID + ">", "zen.on", "Kwaśny Joystick ", "mаja1997", "MAJA_1997", "maja 1997", "ᴍᴀᴊᴀ1997", "mаja1997#0", "maja1997x", "Xmaja1997", "maja199", "M", "x", "PL", "1111", "11111111", "፩፪፫፬፭፮፯፰፱፩፪፫፬፭፮፯፰"}),
			rapid.Custom(func(t *rapid.T) string { return drawDigits(t, nobodyID) }),
		).Draw(t, "thing")
		slot := rapid.SampledFrom(trustedSlots()).Draw(t, "slot")
		if strings.Contains(slot, "Kwaśny") && strings.HasPrefix(thing, "Kwaśny") {
			return
		}
		text := fill(slot, thing)
		if v := readAndDecide(t, rd, view, text, ""); v.Value == Trusted || v.Value == TrustedName || v.Value == None {
			t.Fatalf("%q: %s %d", text, v.Value, v.Reason)
		}
	})
}

// Two texts in one are no clearer than the graver of both.
func TestMoreTextClearsNobody(t *testing.T) {
	rd, view := reader(t), viewOf(people())
	var texts []string
	for _, r := range pastes() {
		if len([]rune(r.paste)) < 120 {
			texts = append(texts, r.paste)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SampledFrom(texts).Draw(t, "a"), rapid.SampledFrom(texts).Draw(t, "b")
		v := readAndDecide(t, rd, view, a, "")
		if v.Value != Accused && v.Value != Risk && v.Value != Caution || v.Reason == Shared {
			return
		}
		text := a + rapid.SampledFrom([]string{"\n", ", ", " | ", ";", "\n\n"}).Draw(t, "between") + b
		if rapid.Bool().Draw(t, "swapped") {
			text = b + "\n" + a
		}
		w := readAndDecide(t, rd, view, text, "")
		told := w.Value == Trusted && (v.Reason == LikeTrusted || v.Reason == InSentence || v.Reason == OtherName || a == "x"+majaID) || // by the id whose name it is
			w.Value == TrustedName && (v.Reason == InSentence || v.Reason == LikeTrusted) // since it stands alone, as it is
		if (w.Value == Trusted || w.Value == TrustedName || w.Value == None) && !told {
			t.Fatalf("%q: %s %d, and %q: %s %d", a, v.Value, v.Reason, text, w.Value, w.Reason)
		}
	})
}
