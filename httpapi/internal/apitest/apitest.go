// Package apitest has a small registry, for the tests of httpapi and of the packages below it. Only tests import it.
package apitest

import (
	"strconv"
	"time"

	"example.org/registry/events"
)

// AsOf is when the model of the tests was last known to be complete.
func AsOf() time.Time { return time.Date(2026, 11, 21, 10, 15, 0, 7_000_000, time.UTC) }

// Epoch is the epoch of the tests' stream, and of the examples in openapi.yaml.
const Epoch = "4f1d0c7e"

// People returns a small registry in which every filter and order makes a difference. Golden files are made from it.
func People() []events.Data {
	none := events.Proofs{}
	private := events.Proofs{Private: true}
	at := func(day int) time.Time { return time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC) }

	entry := func(l events.List, id, chat, name, reason string, verified bool, proofs events.Proofs, day int) events.Data {
		return events.Entry{List: l, EntryID: id, ChatID: chat, Name: name, Reason: reason, Verified: verified,
			Proofs: proofs, ReportID: "R-" + id, ReportedAt: at(day)}
	}
	views := func(l events.List, id string, n int64) events.Data {
		return events.Views{List: l, EntryID: id, Views: n}
	}

	return []events.Data{
		entry(events.Scammers, "s1", "100000000000000001", "Zenon Łotr", "Bierze **zaliczki** i znika.", true, events.Proofs{ID: "p-1"}, 1),
		entry(events.Scammers, "s2", "100000000000000002", "Ćma", "Podszywa się pod *admina*: [strona](https://example.org/x)", false, none, 2),
		entry(events.Scammers, "s3", "100000000000000003", "adam <b>", "Kradzież kont", true, private, 3),
		entry(events.Scammers, "s4", "100000000000000003", "Celina", "To samo konto co adam", false, events.Proofs{ID: "p-4"}, 4),
		entry(events.Servers, "g1", "200000000000000001", "Darmowe Nitro", "Phishing", true, none, 5),
		entry(events.Servers, "g2", "200000000000000002", "Żabka giveaway", "", false, private, 6),
		entry(events.Legit, "l1", "300000000000000001", "Ewa Zaufana", "Pośredniczka", true, none, 7),
		entry(events.Legit, "l2", "300000000000000002", "Celina Czeka", "Jeszcze niesprawdzona", false, none, 8),
		entry(events.Legit, "l3", "100000000000000001", "Zenon Łotr", "Dawne konto", true, none, 9),
		views(events.Scammers, "s1", 10), views(events.Scammers, "s3", 300), views(events.Scammers, "s4", 20),
		views(events.Servers, "g2", 7),
		events.Donation{DonationID: "d-1", Status: events.DonationConfirming, Amount: "25.50", Currency: "LTC",
			Confirmations: 2, RequiredConfirmations: 6, CreatedAt: at(1), UpdatedAt: at(1).Add(90 * time.Second)},
	}
}

// Sequence returns, in decimal, the stream sequence of the last event of People, plus after.
func Sequence(after int) string { return strconv.Itoa(len(People()) + after) }

// Shown returns how many entries of People their lists show.
func Shown() (n int) {
	for _, d := range People() {
		e, isEntry := d.(events.Entry)
		isShown := isEntry && (e.Verified || !e.List.Trusted())
		if isShown {
			n++
		}
	}
	return n
}
