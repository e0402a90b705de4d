package demo

import (
	"fmt"
	"math/rand/v2"
	"time"

	"example.org/registry/events"
)

// Search is a text that matches entries of the demonstration.
const Search = "nitro"

// Sizes of the demonstration. The lists show 2,000 entries, minus the few that are delisted again, and
// those with odd names.
const (
	scammers  = 1480
	servers   = 320
	legit     = 210
	hidden    = 10 // of legit: not verified, so never shown
	donations = 20
	source    = "/demo"
)

// pending is how long a report of the demonstration waits at most, as its page about the registry
// promises.
const pending = 59 * 24 * time.Hour

// Events returns the events of the demonstration on a day, in publishing order. On one day they are
// always the same, so that every machine shows the same pages and an interrupted import can be
// repeated; on another, the times of all have moved with the calendar. The last one is a donation,
// whose subject no other event has. The error would be a broken build.
func Events(day time.Time) ([]events.Event, error) {
	words, err := readWords()
	if err != nil {
		return nil, err
	}
	b := &builder{
		rng:   rand.New(rand.NewPCG(20261121, 7)),
		words: words,
		now:   day.UTC().Truncate(24 * time.Hour).Add(-330 * time.Minute), // the evening before
	}
	entries := b.entries()
	for _, e := range entries {
		b.history(e)
	}
	for _, e := range entries {
		b.views(e)
	}
	for i := range donations {
		b.donation(i)
	}
	return b.events, nil
}

// builder collects the events.
type builder struct {
	rng    *rand.Rand
	words  *words
	now    time.Time // of the newest report
	serial int       // entries made so far, from which entry ids and chat ids are derived
	events []events.Event
}

// entries makes every entry. The lists are mixed and the oldest report comes first, as in a real
// stream.
func (b *builder) entries() []events.Entry {
	var all []events.Entry
	for range scammers {
		all = append(all, b.scammer())
	}
	for range servers {
		all = append(all, b.server())
	}
	for i := range legit {
		all = append(all, b.legit(i >= hidden))
	}
	b.repeatOffenders(all[:scammers])
	b.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	b.date(all)
	return append(all, b.odd()...)
}

func (b *builder) scammer() events.Entry {
	e := b.entry(events.Scammers, b.words.nick(b.rng), b.words.scam(b.rng))
	e.Verified = b.rng.IntN(10) < 6
	return e
}

func (b *builder) server() events.Entry {
	e := b.entry(events.Servers, b.words.serverName(b.rng), b.words.fill(b.rng, pick(b.rng, b.words.ServerTexts)))
	e.Verified = b.rng.IntN(10) < 7
	return e
}

func (b *builder) legit(verified bool) events.Entry {
	e := b.entry(events.Legit, b.words.nick(b.rng), b.words.fill(b.rng, pick(b.rng, b.words.LegitTexts)))
	e.Verified = verified
	e.Proofs = events.Proofs{}
	return e
}

func (b *builder) entry(list events.List, name, reason string) events.Entry {
	b.serial++
	return events.Entry{
		List:     list,
		EntryID:  fmt.Sprintf("demo-%05d", b.serial),
		ChatID:   chatID(b.serial, b.rng),
		Name:     name,
		Reason:   reason,
		Proofs:   b.proofs(),
		ReportID: b.reportID(),
	}
}

// chatID makes an id that no platform can issue: twenty digits above 2⁶⁴, where platforms issue
// 64-bit numbers.
func chatID(serial int, rng *rand.Rand) string {
	return fmt.Sprintf("99%05d%013d", serial, rng.Int64N(1e13))
}

func (b *builder) reportID() string { return fmt.Sprintf("Z-%06d", 100_000+b.serial) }

// proofs have the number of their report, by which the site's stand-in for them leads back.
func (b *builder) proofs() events.Proofs {
	switch n := b.rng.IntN(10); {
	case n < 5:
		return events.Proofs{ID: b.reportID()}
	case n < 7:
		return events.Proofs{Private: true}
	}
	return events.Proofs{}
}

// repeatOffenders gives some reports the chat id of an earlier one, since a person can be reported
// twice.
func (b *builder) repeatOffenders(reports []events.Entry) {
	for i := 40; i < len(reports); i += 40 {
		reports[i].ChatID = reports[b.rng.IntN(i)].ChatID
	}
}

// date spreads the reports over two years, most of them recent, each at its own time. What has
// waited for too long has been confirmed.
func (b *builder) date(all []events.Entry) {
	const span = 2 * 365 * 24 * time.Hour
	for i := range all {
		left := 1 - float64(i+1)/float64(len(all))
		jitter := time.Duration(b.rng.IntN(120)) * time.Second
		age := time.Duration(left * left * float64(span)).Round(time.Second)
		all[i].ReportedAt = b.now.Add(-age - jitter)
		all[i].Verified = all[i].Verified || age+jitter > pending && !all[i].List.Trusted()
	}
}

// appealed is how long an appeal takes in the demonstration.
const appealed = 30 * time.Hour

// history adds the events of one entry: most are listed and stay, some are verified or amended
// later, a few are delisted after an appeal.
func (b *builder) history(e events.Entry) {
	risky := e
	risky.Verified = false
	switch n := b.rng.IntN(100); {
	case n < 6 && e.Verified && !e.List.Trusted():
		b.add(events.TypeListed, e.ReportedAt, risky)
		b.add(events.TypeVerified, e.ReportedAt.Add(min(36*time.Hour, b.now.Sub(e.ReportedAt))), e)
	case n < 9:
		b.add(events.TypeListed, e.ReportedAt, e)
		e.Reason += "\n\n" + "*Uzupełniono opis po rozmowie ze zgłaszającym.*"
		b.add(events.TypeAmended, e.ReportedAt.Add(max(time.Millisecond, min(5*time.Hour, b.now.Sub(e.ReportedAt)))), e)
	case n < 13 && e.List == events.Scammers && !e.Verified && b.now.Sub(e.ReportedAt) > appealed:
		b.add(events.TypeListed, e.ReportedAt, e)
		gone := e.ReportedAt.Add(appealed)
		b.add(events.TypeDelisted, gone, events.Delisting{List: e.List, EntryID: e.EntryID, Time: gone})
	default:
		b.add(events.TypeListed, e.ReportedAt, e)
	}
}

// views gives two entries of three a view total: many small ones, a few very large.
func (b *builder) views(e events.Entry) {
	if b.rng.IntN(3) == 0 {
		return
	}
	x := b.rng.Float64()
	b.add(events.TypeViewsCounted, b.now, events.Views{
		List: e.List, EntryID: e.EntryID, Views: int64(3 + 24_000*x*x*x*x*x*x),
	})
}

// add appends one event. Its revision is its time, and its id follows from that.
func (b *builder) add(kind events.Type, at time.Time, data events.Data) {
	data = events.Revised(data, at.UnixMilli())
	e := events.Event{ID: events.StateID(data), Source: source, Type: kind, Time: at, Data: data}
	if kind.Removes() {
		e.Time = time.Time{} // its data has it
	}
	b.events = append(b.events, e)
}

// donation adds the i-th donation. Its id is long and looks random, as those of real donations must
// be, but is always the same: the README shows the first one.
func (b *builder) donation(i int) {
	created := b.now.Add(-time.Duration(donations-i) * 31 * time.Hour)
	state := pick(b.rng, []events.DonationStatus{
		events.DonationConfirmed, events.DonationConfirmed, events.DonationPending,
		events.DonationConfirming, events.DonationFailed, events.DonationExpired,
	})
	needed := int64(6)
	done := map[events.DonationStatus]int64{events.DonationConfirmed: needed, events.DonationConfirming: 2}[state]
	updated := created.Add(time.Duration(1+b.rng.IntN(90)) * time.Minute)
	b.add(events.TypeDonationUpdated, updated, events.Donation{
		DonationID:            b.donationID(),
		Status:                state,
		Amount:                fmt.Sprintf("0.%05d", 20+b.rng.IntN(900)),
		Currency:              pick(b.rng, []string{"BTC", "ETH", "LTC"}),
		Confirmations:         done,
		RequiredConfirmations: needed,
		CreatedAt:             created,
		UpdatedAt:             updated,
	})
}

// donationID draws 26 characters.
func (b *builder) donationID() string {
	const letters = "abcdefghijkmnpqrstuvwxyz23456789"
	id := make([]byte, 26)
	for i := range id {
		id[i] = letters[b.rng.IntN(len(letters))]
	}
	return string(id)
}
