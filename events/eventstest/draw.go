package eventstest

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"example.org/registry/events"
)

// AnyEvent draws any valid event of the contract, at the bounds too.
func AnyEvent() *rapid.Generator[events.Event] {
	return rapid.Custom(func(t *rapid.T) events.Event {
		e := events.Event{
			ID:     attribute(256).Draw(t, "id"),
			Source: attribute(80).Draw(t, "source"),
			Type:   rapid.SampledFrom(allTypes()).Draw(t, "type"),
		}
		if rapid.Bool().Draw(t, "timed") {
			e.Time = Time().Draw(t, "time")
		}
		e.Data = dataOf(t, e.Type)
		return e
	})
}

func allTypes() []events.Type {
	all := events.Types()
	return all[:]
}

func dataOf(t *rapid.T, typ events.Type) events.Data {
	switch typ {
	case events.TypeDelisted:
		return events.Delisting{List: List().Draw(t, "list"), EntryID: Key().Draw(t, "entryId")}
	case events.TypeViewsCounted:
		return AnyViews().Draw(t, "views")
	case events.TypeDonationUpdated:
		return AnyDonation().Draw(t, "donation")
	case events.TypeDonationRemoved:
		return events.DonationRemoval{DonationID: Key().Draw(t, "donationId")}
	}
	entry := AnyEntry().Draw(t, "entry")
	entry.Verified = entry.Verified || typ == events.TypeVerified
	return entry
}

// AnyEntry draws any valid entry.
func AnyEntry() *rapid.Generator[events.Entry] {
	return rapid.Custom(func(t *rapid.T) events.Entry {
		e := events.Entry{
			List: List().Draw(t, "list"), EntryID: Key().Draw(t, "entryId"),
			ChatID: Text(1, 64).Draw(t, "chatId"), Name: Text(1, 200).Draw(t, "name"),
			Reason: Text(0, 400).Draw(t, "reason"), Verified: rapid.Bool().Draw(t, "verified"),
			ReportID: Text(1, 64).Draw(t, "reportId"), ReportedAt: Time().Draw(t, "reportedAt"),
		}
		switch rapid.IntRange(0, 2).Draw(t, "proofs") {
		case 0:
			e.Proofs.Private = true
		case 1:
			e.Proofs.ID = Key().Draw(t, "proofs.id")
		}
		return e
	})
}

// AnyViews draws any valid view total.
func AnyViews() *rapid.Generator[events.Views] {
	return rapid.Custom(func(t *rapid.T) events.Views {
		return events.Views{
			List: List().Draw(t, "list"), EntryID: Key().Draw(t, "entryId"),
			Views: integer().Draw(t, "views"),
		}
	})
}

// AnyDonation draws any valid donation.
func AnyDonation() *rapid.Generator[events.Donation] {
	return rapid.Custom(func(t *rapid.T) events.Donation {
		return events.Donation{
			DonationID: Key().Draw(t, "donationId"),
			Status: rapid.SampledFrom([]events.DonationStatus{events.DonationPending, events.DonationConfirming,
				events.DonationConfirmed, events.DonationFailed, events.DonationExpired}).Draw(t, "status"),
			Amount:                rapid.StringMatching(`[0-9]{1,18}(\.[0-9]{1,18})?`).Draw(t, "amount"),
			Currency:              rapid.StringMatching(`[A-Z0-9]{2,10}`).Draw(t, "currency"),
			Confirmations:         integer().Draw(t, "confirmations"),
			RequiredConfirmations: integer().Draw(t, "requiredConfirmations"),
			CreatedAt:             Time().Draw(t, "createdAt"),
			UpdatedAt:             Time().Draw(t, "updatedAt"),
		}
	})
}

// List draws a list.
func List() *rapid.Generator[events.List] {
	all := events.Lists()
	return rapid.SampledFrom(all[:])
}

// Key draws an entryId, a donationId or a proofs.id.
func Key() *rapid.Generator[string] { return rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`) }

// Text draws any text of so many code points without NUL.
func Text(least, most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.ReplaceAll(rapid.StringN(least, most, -1).Draw(t, "text"), "\x00", "?")
	})
}

// Time draws a UTC time of the years 1970 to 2200, whole seconds or with a fraction.
func Time() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		last := time.Date(2200, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
		sec := rapid.Int64Range(0, last).Draw(t, "second")
		nano := rapid.SampledFrom([]int64{0, 0, 120_000_000, 1, 999_999_999}).Draw(t, "fraction")
		return time.Unix(sec, nano).UTC()
	})
}

func integer() *rapid.Generator[int64] { return rapid.Int64Range(0, 1<<53-1) }

// attribute draws a CloudEvents attribute: text that fits a header.
func attribute(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringOfN(rapid.RuneFrom(nil, printable()), 1, most, -1).Draw(t, "text")
		if s[0] == ' ' || s[len(s)-1] == ' ' {
			return fmt.Sprintf("id-%x", s[:min(len(s), 40)])
		}
		return s
	})
}

// printable are the characters of Polish texts and some beyond the basic plane.
func printable() *unicode.RangeTable {
	return &unicode.RangeTable{
		R16:         []unicode.Range16{{Lo: 0x20, Hi: 0x7e, Stride: 1}, {Lo: 0xa1, Hi: 0x17f, Stride: 1}},
		R32:         []unicode.Range32{{Lo: 0x1f600, Hi: 0x1f64f, Stride: 1}},
		LatinOffset: 1,
	}
}
