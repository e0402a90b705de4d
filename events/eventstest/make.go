package eventstest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"example.org/registry/events"
)

// Start is the day of the first report that Entries makes.
func Start() time.Time { return time.Date(2021, 1, 4, 6, 0, 0, 0, time.UTC) }

// Entries makes n valid entries with Polish texts, the same for the same seed: seven in ten
// on scammers, two on servers, one on legit. Entry ids are distinct; some names and chat ids
// recur.
func Entries(n int, seed uint64) []events.Entry {
	r := rand.New(rand.NewPCG(seed, 0x5245474953545259))
	out := make([]events.Entry, n)
	for i := range out {
		out[i] = entry(r, i)
	}
	return out
}

func entry(r *rand.Rand, i int) events.Entry {
	e := events.Entry{
		List:       list(r),
		EntryID:    fmt.Sprintf("e%07d-%04x", i, r.IntN(1<<16)),
		ChatID:     chatID(r, i),
		Name:       name(r),
		Reason:     reason(r),
		Verified:   r.IntN(3) > 0,
		ReportID:   fmt.Sprintf("R-%07d", i),
		ReportedAt: Start().Add(time.Duration(i)*7*time.Minute + time.Duration(r.IntN(420_000))*time.Millisecond),
	}
	switch r.IntN(4) {
	case 0:
		e.Proofs.Private = true
	case 1, 2:
		e.Proofs.ID = fmt.Sprintf("p%06x", r.IntN(1<<24))
	}
	return e
}

// Listed is the event that puts e on its list. Its id depends on e and version only.
func Listed(e events.Entry, version int) events.Event {
	return events.Event{
		ID: fmt.Sprintf("%s.%s.%d", e.List, e.EntryID, version), Source: "urn:registry:test",
		Type: events.TypeListed, Time: e.ReportedAt, Data: e,
	}
}

// Events is Entries, each wrapped by Listed.
func Events(n int, seed uint64) []events.Event {
	out := make([]events.Event, n)
	for i, e := range Entries(n, seed) {
		out[i] = Listed(e, 1)
	}
	return out
}

func list(r *rand.Rand) events.List {
	switch k := r.IntN(10); {
	case k < 7:
		return events.Scammers
	case k < 9:
		return events.Servers
	}
	return events.Legit
}

// chatID has 21 digits, one more than any platform has issued. One in fifty recurs.
func chatID(r *rand.Rand, i int) string {
	if r.IntN(50) == 0 {
		i = r.IntN(i + 1)
	}
	return fmt.Sprintf("9%020d", uint64(i)*1_000_003+17)
}

func name(r *rand.Rand) string {
	first := pick(r, "Łukasz", "Żaneta", "Grześ", "Ćma", "Ślepy", "Zażółć", "Ązor", "Kuba", "Michał", "Ola",
		"Błyskawica", "Gęś", "Jaźń", "Król", "Niedźwiedź", "paypal", "ADMIN", "Handel", "Skup", "Wymiana")
	second := pick(r, "", " Kowalski", " Wiśniewska", "_PL", ".eu", " złotówka", " 2.0", "😀", " ʟᴇɢɪᴛ", " Nowak")
	if r.IntN(3) == 0 {
		return first + second
	}
	return fmt.Sprintf("%s%s%d", first, second, r.IntN(10_000))
}

func reason(r *rand.Rand) string {
	sentences := make([]string, 1+r.IntN(6))
	for i := range sentences {
		sentences[i] = pick(r,
			"Wyłudził **przelew** za konto, którego nie oddał.",
			"Podszywa się pod administratora serwera.",
			"Sprzedaż kluczy, po wpłacie blokuje kupującego.",
			"Zgłoszony przez *trzy* osoby, dowody w wątku.",
			"Używa kilku kont: `żółw`, `gęś` i `łoś`.",
			"Link do fałszywej strony: <https://przyklad.example/okazja>.",
			"Obiecuje zwrot ~~jutro~~ nigdy.",
			"\n\n- kwota: 150 zł\n- forma: kod BLIK\n",
			"Wymiana przedmiotów <b>bez</b> pośrednika.")
	}
	return strings.Join(sentences, " ")
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }
