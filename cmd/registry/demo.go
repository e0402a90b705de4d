package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"example.org/registry/events"
)

// Sizes of the demonstration registry. Ten of the trusted persons are not verified, so never
// shown: together the lists show 2 000 entries, but for the few that are delisted again.
const (
	demoScammers  = 1480
	demoServers   = 320
	demoLegit     = 210
	demoHidden    = 10
	demoDonations = 20
	demoSource    = "/demo"

	// demoSearch is a name that the demonstration has: the ready line offers it.
	demoSearch = "nitro"
)

// demo makes the demonstration registry: always the same events in the same order, so that
// every machine shows the same pages and an interrupted import can be repeated.
type demo struct {
	rng    *rand.Rand
	words  demoWords
	now    time.Time // time of the newest report
	serial int       // entries made so far: the source of entry ids and chat ids
	events []events.Event
}

// newDemo reads the embedded word lists. Its error would be a broken build.
func newDemo() (*demo, error) {
	words, err := readDemoWords()
	if err != nil {
		return nil, err
	}
	return &demo{
		rng:   rand.New(rand.NewPCG(20261121, 7)),
		words: words,
		now:   time.Date(2026, time.November, 20, 18, 30, 0, 0, time.UTC),
	}, nil
}

// demoEvents returns the events of the demonstration registry in the order to publish them.
// The last one is a donation: its subject tells a finished import from an interrupted one.
func demoEvents() ([]events.Event, error) {
	d, err := newDemo()
	if err != nil {
		return nil, err
	}
	entries := d.entries()
	for _, e := range entries {
		d.history(e)
	}
	for _, e := range entries {
		d.views(e)
	}
	for i := range demoDonations {
		d.donation(i)
	}
	return d.events, nil
}

// entries makes every entry and mixes the lists, oldest report first, as a real stream would have them.
func (d *demo) entries() []events.Entry {
	var all []events.Entry
	for range demoScammers {
		all = append(all, d.scammer())
	}
	for range demoServers {
		all = append(all, d.server())
	}
	for i := range demoLegit {
		all = append(all, d.legit(i >= demoHidden))
	}
	d.repeatOffenders(all[:demoScammers])
	d.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	d.date(all)
	return all
}

func (d *demo) scammer() events.Entry {
	e := d.entry(events.Scammers, d.nick(), d.words.scam(d.rng))
	e.Verified = d.rng.IntN(10) < 6
	return e
}

func (d *demo) server() events.Entry {
	e := d.entry(events.Servers, d.serverName(), d.words.fill(d.rng, pick(d.rng, d.words.ServerTexts)))
	e.Verified = d.rng.IntN(10) < 7
	return e
}

func (d *demo) legit(verified bool) events.Entry {
	e := d.entry(events.Legit, d.nick(), d.words.fill(d.rng, pick(d.rng, d.words.LegitTexts)))
	e.Verified = verified
	e.Proofs = events.Proofs{}
	return e
}

func (d *demo) entry(list events.List, name, reason string) events.Entry {
	d.serial++
	return events.Entry{
		List:     list,
		EntryID:  fmt.Sprintf("demo-%05d", d.serial),
		ChatID:   demoChatID(d.serial, d.rng),
		Name:     name,
		Reason:   reason,
		Proofs:   d.proofs(),
		ReportID: fmt.Sprintf("Z-%06d", 100_000+d.serial),
	}
}

// demoChatID makes a chat id that no platform has issued or ever can: twenty digits above
// 2⁶⁴, while chat platforms hand out 64-bit numbers.
func demoChatID(serial int, rng *rand.Rand) string {
	return fmt.Sprintf("99%05d%013d", serial, rng.Int64N(1e13))
}

func (d *demo) proofs() events.Proofs {
	switch n := d.rng.IntN(10); {
	case n < 5:
		return events.Proofs{ID: fmt.Sprintf("dowod-%05d", d.serial)}
	case n < 7:
		return events.Proofs{Private: true}
	}
	return events.Proofs{}
}

// repeatOffenders gives some reports the chat id of an earlier one: a person can be reported twice.
func (d *demo) repeatOffenders(reports []events.Entry) {
	for i := 40; i < len(reports); i += 40 {
		reports[i].ChatID = reports[d.rng.IntN(i)].ChatID
	}
}

// date spreads the reports over two years, more of them lately, each at its own time.
func (d *demo) date(all []events.Entry) {
	const span = 2 * 365 * 24 * time.Hour
	for i := range all {
		left := 1 - float64(i+1)/float64(len(all))
		jitter := time.Duration(d.rng.IntN(120)) * time.Second
		age := time.Duration(left * left * float64(span)).Round(time.Second)
		all[i].ReportedAt = d.now.Add(-age - jitter)
	}
}
