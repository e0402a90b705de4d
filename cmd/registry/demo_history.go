package main

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.org/registry/events"
)

// history publishes an entry the way it would have come about: most are listed and stay,
// some are verified or amended later, a few leave the list after an appeal.
func (d *demo) history(e events.Entry) {
	risky := e
	risky.Verified = false
	switch n := d.rng.IntN(100); {
	case n < 6 && e.Verified && e.List != events.Legit:
		d.add(events.TypeListed, e.ReportedAt, risky)
		d.add(events.TypeVerified, e.ReportedAt.Add(36*time.Hour), e)
	case n < 9:
		d.add(events.TypeListed, e.ReportedAt, e)
		e.Reason += "\n\n" + "*Uzupełniono opis po rozmowie ze zgłaszającym.*"
		d.add(events.TypeAmended, e.ReportedAt.Add(5*time.Hour), e)
	case n == 9 && e.List == events.Scammers && !e.Verified:
		d.add(events.TypeListed, e.ReportedAt, e)
		d.add(events.TypeDelisted, e.ReportedAt.Add(72*time.Hour), events.Delisting{List: e.List, EntryID: e.EntryID})
	default:
		d.add(events.TypeListed, e.ReportedAt, e)
	}
}

// views gives two entries of three a view total: many small ones, a few very large.
func (d *demo) views(e events.Entry) {
	if d.rng.IntN(3) == 0 {
		return
	}
	x := d.rng.Float64()
	d.add(events.TypeViewsCounted, d.now, events.Views{
		List: e.List, EntryID: e.EntryID, Views: int64(3 + 24_000*x*x*x*x*x*x),
	})
}

// add appends one event. Its id is derived from its place, so that it is the same every time.
func (d *demo) add(kind events.Type, at time.Time, data events.Data) {
	name := fmt.Sprintf("%s/%d", demoSource, len(d.events))
	d.events = append(d.events, events.Event{
		ID:     uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String(),
		Source: demoSource,
		Type:   kind,
		Time:   at,
		Data:   data,
	})
}
