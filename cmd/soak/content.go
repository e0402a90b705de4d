//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// content draws events such that what the registry holds stays as much as it was: texts keep their lengths, and
// whoever leaves makes room for who left longest ago. One goroutine at a time may use it.
type content struct {
	rng       *rand.Rand
	run       string // makes event ids of this run
	serial    int
	entries   []events.Entry // all there are, listed or not
	delisted  []int          // of entries, longest ago first
	listed    []int
	donations []string // that exist
	removed   []string // longest ago first
}

func newContent(n int, seed uint64) *content {
	c := &content{rng: rand.New(rand.NewPCG(seed, 1)), run: fmt.Sprintf("soak-%d", seed), entries: eventstest.Entries(n, seed)}
	for i := range n {
		c.listed = append(c.listed, i)
	}
	for i := range max(n/20, 20) {
		c.donations = append(c.donations, fmt.Sprintf("donation-%d-%06d", seed%1000, i))
	}
	return c
}

// event makes one of an id of its own.
func (c *content) event(t events.Type, data events.Data) events.Event {
	c.serial++
	return events.Event{ID: fmt.Sprintf("%s-%d", c.run, c.serial), Source: "urn:registry:soak", Type: t, Data: data}
}

// all is the first content, everything once, some of it removed again.
func (c *content) all() []events.Event {
	var out []events.Event
	for i, e := range c.entries {
		out = append(out, c.event(events.TypeListed, c.state(i)), c.event(events.TypeViewsCounted, c.views(e)))
	}
	for _, id := range c.donations {
		out = append(out, c.event(events.TypeDonationUpdated, c.donation(id)))
	}
	for range len(c.entries) / 20 {
		out = append(out, c.delist())
	}
	for range len(c.donations) / 5 {
		out = append(out, c.remove())
	}
	return out
}

// next is what happens next, one event or two that belong together.
func (c *content) next() []events.Event {
	switch n := c.rng.IntN(20); {
	case n < 9:
		return []events.Event{c.event(events.TypeViewsCounted, c.views(c.entries[c.rng.IntN(len(c.entries))]))}
	case n < 15:
		return []events.Event{c.amend()}
	case n < 18:
		return []events.Event{c.list(), c.delist()}
	case n < 19:
		id := c.donations[c.rng.IntN(len(c.donations))]
		return []events.Event{c.event(events.TypeDonationUpdated, c.donation(id))}
	}
	id := take(&c.removed, 0)
	c.donations = append(c.donations, id)
	return []events.Event{c.event(events.TypeDonationUpdated, c.donation(id)), c.remove()}
}

// amend is a new state of somebody who is listed.
func (c *content) amend() events.Event {
	e := c.state(c.listed[c.rng.IntN(len(c.listed))])
	if e.Verified {
		return c.event(events.TypeVerified, e)
	}
	return c.event(events.TypeAmended, e)
}

// state is a new one of an entry: another name, of the same length.
func (c *content) state(i int) events.Entry {
	e := c.entries[i]
	e.Name = fmt.Sprintf("%s %05d", e.Name, c.serial%100_000)
	e.Verified = c.rng.IntN(3) > 0
	return e
}

func (c *content) views(e events.Entry) events.Views {
	return events.Views{List: e.List, EntryID: e.EntryID, Views: 1_000_000 + c.rng.Int64N(1_000_000)}
}

func (c *content) donation(id string) events.Donation {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return events.Donation{DonationID: id, Status: events.DonationConfirming, Amount: fmt.Sprintf("%d.50", 10+c.rng.IntN(90)), Currency: "PLN",
		Confirmations: c.rng.Int64N(6), RequiredConfirmations: 6, CreatedAt: at, UpdatedAt: at.Add(time.Duration(c.rng.IntN(1_000_000)) * time.Second)}
}

// list puts back who left longest ago.
func (c *content) list() events.Event {
	i := take(&c.delisted, 0)
	c.listed = append(c.listed, i)
	return c.event(events.TypeListed, c.state(i))
}

func (c *content) delist() events.Event {
	i := take(&c.listed, c.rng.IntN(len(c.listed)))
	c.delisted = append(c.delisted, i)
	return c.event(events.TypeDelisted, events.Delisting{List: c.entries[i].List, EntryID: c.entries[i].EntryID})
}

func (c *content) remove() events.Event {
	id := take(&c.donations, c.rng.IntN(len(c.donations)))
	c.removed = append(c.removed, id)
	return c.event(events.TypeDonationRemoved, events.DonationRemoval{DonationID: id})
}

// take takes one out; the last takes its place, or the others move up where it was the first.
func take[T any](from *[]T, i int) T {
	all := *from
	x := all[i]
	if i == 0 {
		*from = append([]T(nil), all[1:]...)
		return x
	}
	all[i] = all[len(all)-1]
	*from = all[:len(all)-1]
	return x
}
