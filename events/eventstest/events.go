package eventstest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"example.org/registry/events"
)

// Start returns a time just before the first report of Entries. One report follows in every 7 minutes.
func Start() time.Time { return time.Date(2021, 1, 4, 6, 0, 0, 0, time.UTC) }

// Entries returns n valid entries with Polish texts, the same for the same seed: seven in ten on
// scammers, two on servers, one on legit. Entry ids are distinct; some names and chat ids recur.
func Entries(n int, seed uint64) []events.Entry {
	r := rand.New(rand.NewPCG(seed, 0x5245474953545259))
	out := make([]events.Entry, n)
	for i := range out {
		out[i] = makeEntry(r, i)
	}
	return out
}

func makeEntry(r *rand.Rand, i int) events.Entry {
	e := events.Entry{
		List:       pickList(r),
		EntryID:    fmt.Sprintf("e%07d-%04x", i, r.IntN(1<<16)),
		ChatID:     pickChatID(r, i),
		Name:       pickName(r),
		Reason:     pickReason(r),
		Verified:   r.IntN(3) > 0,
		ReportID:   fmt.Sprintf("R-%07d", i),
		ReportedAt: Start().Add(time.Duration(i)*7*time.Minute + time.Duration(r.IntN(7*60_000))*time.Millisecond),
		Revision:   1,
	}

	// A quarter of the entries have private proofs, and half have public proofs.
	switch r.IntN(4) {
	case 0:
		e.Proofs.Private = true
	case 1, 2:
		e.Proofs.ID = fmt.Sprintf("p%06x", r.IntN(1<<24))
	}
	return e
}

// Listed returns the event that lists e with version as the revision, or 1 if version is less.
func Listed(e events.Entry, version int) events.Event {
	e.Revision = max(1, int64(version))
	return events.Event{
		ID: fmt.Sprintf("%s.%s.%d", e.List, e.EntryID, version), Source: "urn:registry:test",
		Type: events.TypeListed, Time: e.ReportedAt, Data: e,
	}
}

// Events returns Entries as events (Listed).
func Events(n int, seed uint64) []events.Event {
	out := make([]events.Event, n)
	for i, e := range Entries(n, seed) {
		out[i] = Listed(e, 1)
	}
	return out
}

func pickList(r *rand.Rand) events.List {
	tenth := r.IntN(10)
	if tenth < 7 {
		return events.Scammers
	}
	if tenth < 9 {
		return events.Servers
	}
	return events.Legit
}

// pickChatID returns the chat id of entry i, but once in fifty times the chat id of an earlier entry. The ids have
// 21 digits, one more than any platform has issued.
func pickChatID(r *rand.Rand, i int) string {
	if r.IntN(50) == 0 {
		i = r.IntN(i + 1)
	}
	return fmt.Sprintf("9%020d", uint64(i)*1_000_003+17) // ids far apart
}

func pickName(r *rand.Rand) string {
	first := pickOne(r, "Łukasz", "Żaneta", "Grześ", "Ćma", "Ślepy", "Zażółć", "Ązor", "Kuba", "Michał", "Ola",
		"Błyskawica", "Gęś", "Jaźń", "Król", "Niedźwiedź", "paypal", "ADMIN", "Handel", "Skup", "Wymiana")
	second := pickOne(r, "", " Kowalski", " Wiśniewska", "_PL", ".eu", " złotówka", " 2.0", "😀", " ʟᴇɢɪᴛ", " Nowak")
	if r.IntN(3) == 0 {
		return first + second
	}
	return fmt.Sprintf("%s%s%d", first, second, r.IntN(10_000))
}

func pickReason(r *rand.Rand) string {
	sentences := make([]string, 1+r.IntN(6))
	for i := range sentences {
		sentences[i] = pickOne(r,
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

func pickOne(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// AnyEvent draws any valid event of the contract, including the bounds.
func AnyEvent() *rapid.Generator[events.Event] {
	types := events.Types()
	return rapid.Custom(func(t *rapid.T) events.Event {
		e := events.Event{
			ID:     anyAttribute(256).Draw(t, "id"),
			Source: anyAttribute(80).Draw(t, "source"),
			Type:   rapid.SampledFrom(types[:]).Draw(t, "type"),
		}
		e.Data = anyDataOf(t, e.Type)

		if rapid.Bool().Draw(t, "timed") {
			e.Time = anyTime().Draw(t, "time")
		}
		return e
	})
}

func anyDataOf(t *rapid.T, typ events.Type) events.Data {
	switch typ {
	case events.TypeDelisted:
		return events.Delisting{List: anyList().Draw(t, "list"), EntryID: anyKey().Draw(t, "entryId"),
			Revision: anyRevision().Draw(t, "revision")}
	case events.TypeViewsCounted:
		return AnyViews().Draw(t, "views")
	case events.TypeDonationUpdated:
		return AnyDonation().Draw(t, "donation")
	case events.TypeDonationRemoved:
		return events.DonationRemoval{DonationID: anyKey().Draw(t, "donationId"),
			Revision: anyRevision().Draw(t, "revision")}
	}

	entry := AnyEntry().Draw(t, "entry")
	entry.Verified = entry.Verified || typ == events.TypeVerified
	return entry
}

// AnyEntry draws any valid entry.
func AnyEntry() *rapid.Generator[events.Entry] {
	return rapid.Custom(func(t *rapid.T) events.Entry {
		e := events.Entry{
			List: anyList().Draw(t, "list"), EntryID: anyKey().Draw(t, "entryId"),
			ChatID: ChatID().Draw(t, "chatId"), Name: anyName().Draw(t, "name"),
			Reason: anyText(0, 400).Draw(t, "reason"), Verified: rapid.Bool().Draw(t, "verified"),
			ReportID: anyText(1, 64).Draw(t, "reportId"), ReportedAt: anyTime().Draw(t, "reportedAt"),
			Revision: anyRevision().Draw(t, "revision"),
		}

		switch rapid.IntRange(0, 2).Draw(t, "proofs") {
		case 0:
			e.Proofs.Private = true
		case 1:
			e.Proofs.ID = anyKey().Draw(t, "proofs.id")
		}

		if rapid.Bool().Draw(t, "complete") {
			e = Complete(e)
		}
		return e
	})
}

// AnyViews draws any valid view total.
func AnyViews() *rapid.Generator[events.Views] {
	return rapid.Custom(func(t *rapid.T) events.Views {
		return events.Views{
			List: anyList().Draw(t, "list"), EntryID: anyKey().Draw(t, "entryId"),
			Revision: anyRevision().Draw(t, "revision"), Views: anyInteger().Draw(t, "views"),
		}
	})
}

// AnyDonation draws any valid donation.
func AnyDonation() *rapid.Generator[events.Donation] {
	statuses := events.DonationStatuses()
	return rapid.Custom(func(t *rapid.T) events.Donation {
		return events.Donation{
			DonationID:            anyKey().Draw(t, "donationId"),
			Status:                rapid.SampledFrom(statuses[:]).Draw(t, "status"),
			Amount:                rapid.StringMatching(`[0-9]{1,18}(\.[0-9]{1,18})?`).Draw(t, "amount"),
			Currency:              rapid.StringMatching(`[A-Z0-9]{2,10}`).Draw(t, "currency"),
			Confirmations:         anyInteger().Draw(t, "confirmations"),
			RequiredConfirmations: anyInteger().Draw(t, "requiredConfirmations"),
			CreatedAt:             anyTime().Draw(t, "createdAt"),
			UpdatedAt:             anyTime().Draw(t, "updatedAt"),
			Revision:              anyRevision().Draw(t, "revision"),
		}
	})
}

// Complete gives every zero field of an entry a value, also a field that is added to Entry later.
func Complete(e events.Entry) events.Entry {
	entry := reflect.ValueOf(&e).Elem()
	for i := range entry.NumField() {
		field := entry.Field(i)
		if !field.IsZero() {
			continue
		}

		switch field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Int64:
			field.SetInt(7)
		}
	}
	return e
}

// Unset returns the names of the fields of T that are zero in all values. With it, a test finds a new field that
// its values do not cover.
func Unset[T any](values []T) (names []string) {
	for i := range reflect.TypeFor[T]().NumField() {
		isSet := slices.ContainsFunc(values, func(v T) bool { return !reflect.ValueOf(v).Field(i).IsZero() })
		if !isSet {
			names = append(names, reflect.TypeFor[T]().Field(i).Name)
		}
	}
	return names
}

func anyList() *rapid.Generator[events.List] {
	all := events.Lists()
	return rapid.SampledFrom(all[:])
}

// anyKey draws an entryId, a donationId or a proofs.id.
func anyKey() *rapid.Generator[string] { return rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`) }

// ChatID draws a chat id.
func ChatID() *rapid.Generator[string] { return anyKey().Filter(events.IsChatID) }

func anyName() *rapid.Generator[string] {
	return anyText(1, 200).Filter(func(s string) bool { return strings.TrimSpace(s) != "" })
}

// anyText draws any text of least to most characters (Unicode code points) without NUL.
func anyText(least, most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.ReplaceAll(rapid.StringN(least, most, -1).Draw(t, "text"), "\x00", "?")
	})
}

func anyRevision() *rapid.Generator[int64] { return rapid.Int64Range(1, events.MaxRevision) }

// anyTime draws a UTC time of the years 1970 to 2200, in whole seconds or with milliseconds.
func anyTime() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		last := time.Date(2200, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
		sec := rapid.Int64Range(0, last).Draw(t, "second")
		nano := rapid.SampledFrom([]int64{0, 0, 120_000_000, 1_000_000, 999_000_000}).Draw(t, "fraction")
		return time.Unix(sec, nano).UTC()
	})
}

func anyInteger() *rapid.Generator[int64] { return rapid.Int64Range(0, 1<<53-1) }

// anyAttribute draws a CloudEvents attribute: text that fits a header.
func anyAttribute(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringOfN(rapid.RuneFrom(nil, printableRunes()), 1, most, -1).Draw(t, "text")
		if s[0] == ' ' || s[len(s)-1] == ' ' { // the contract forbids outer spaces
			return fmt.Sprintf("id-%x", s[:min(len(s), 40)])
		}
		return s
	})
}

// printableRunes returns the characters of Polish texts and some beyond the basic plane.
func printableRunes() *unicode.RangeTable {
	return &unicode.RangeTable{
		R16:         []unicode.Range16{{Lo: 0x20, Hi: 0x7e, Stride: 1}, {Lo: 0xa1, Hi: 0x17f, Stride: 1}},
		R32:         []unicode.Range32{{Lo: 0x1f600, Hi: 0x1f64f, Stride: 1}},
		LatinOffset: 1,
	}
}
