package demo

import (
	"fmt"
	"strings"
	"time"

	"example.org/registry/events"
)

// oddNames are names as real lists have them: decorated, escaped, with times and separators, of symbols
// alone, without anything to see, long, within one another, and words that people write before a name.
func oddNames() map[events.List][]string {
	return map[events.List][]string{
		events.Scammers: {
			"◇Edmund◇", "| Cyprian |", "— Gracjan —", "×Kornel×", "Oktawian 100%", "★ Okazje ★", "Jeremi™", "Kod%20Rabatowy", "kiciuś&#x17a;", "Rabat 100%25",
			"hxxps://kocur", "demo[dot]kotek", "Radio 21:37", "24.12.2024", "🔥🔥🔥", "➳♥", "???", "\u3164", "Nick", "PL", "Pośrednik", "tomek", "Kasia", "Agent",
			"Gry, konta i nitro", "Kamil | Sklep", "wymiana skinów bez ściemy i bez prowizji", "𝓑𝓪𝓻𝓽𝓮𝓴", "🅼🅴🅶🅰", "Łukasz\u2063Nowy", strings.Repeat("bardzo ", 28) + "ok",
		},
		events.Servers: {"Ala &amp; Ola", "Sklep&nbsp;Tani", "Tanie™ Konta", "Serwer", "sklep.онлайн", "「 Nitro 」"},
		events.Legit: {
			"Kasia Nowakowska", "Agent 7", "Ekipa 24", "xX_tomek_Xx", "Maja (Pośrednik)", "Olek | Pośrednik", "✓ Hania", "Tom &amp; Jerry", "mm", "ID Ewa",
		},
	}
}

// odd makes entries with odd names, and ids of 17 to 19 digits that no platform issues: shorter ones
// begin with a zero, and those of 19 digits lie in the year 2083.
func (b *builder) odd() (all []events.Entry) {
	names, n := oddNames(), 0
	for _, l := range events.Lists() {
		for i, name := range names[l] {
			n++
			all = append(all, events.Entry{
				List: l, EntryID: fmt.Sprintf("demo-o%03d", n), Name: name, Verified: l == events.Legit || i%5 != 4,
				ChatID:     [...]string{fmt.Sprintf("0%016d", 4_831_907_562_271*n), fmt.Sprintf("0%017d", 57_193_360_845_193*n), fmt.Sprintf("91%017d", 73_651_902_846_337*n)}[n%3],
				Reason:     map[bool]string{true: "Bez zastrzeżeń.", false: "Udaje sklep."}[l == events.Legit],
				ReportID:   fmt.Sprintf("Z-%06d", 200_000+n),
				ReportedAt: b.now.Add(-time.Duration(n) * 23 * time.Hour),
			})
		}
	}
	return all
}
