package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// mixedEvents are entries, view totals of listed and other entries, and donations.
func mixedEvents(t *testing.T) string {
	t.Helper()
	all := eventstest.Events(300, 3)
	for i, e := range eventstest.Entries(50, 3) {
		all = append(all, events.Event{ID: fmt.Sprint("v", i), Source: "/test", Type: events.TypeViewsCounted,
			Data: events.Views{Revision: 1, List: e.List, EntryID: e.EntryID, Views: int64(i)}})
	}
	all = append(all,
		events.Event{ID: "nobody", Source: "/test", Type: events.TypeViewsCounted,
			Data: events.Views{Revision: 1, List: events.Legit, EntryID: "not-listed", Views: 7}},
		events.Event{ID: "gone", Source: "/test", Type: events.TypeDelisted,
			Data: events.Delisting{Revision: 1, Time: eventstest.Start(), List: events.Scammers, EntryID: "gone"}},
		events.Event{ID: "donation", Source: "/test", Type: events.TypeDonationUpdated,
			Data: events.Donation{Revision: 1, DonationID: "d1", Status: events.DonationPending, Amount: "1.50", Currency: "PLN",
				CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}})
	return ndjson(t, all...)
}

// distinctPeople are n people with names, ids and chat ids of their own, so that each can be asked
// for.
func distinctPeople(n int) []events.Entry {
	people := eventstest.Entries(n, 15)
	for i := range people {
		people[i].Name, people[i].ChatID, people[i].Verified = fmt.Sprintf("Osoba %03dx", i), fmt.Sprint(7000000+i), true
		people[i].Reason = fmt.Sprintf("powód%03dx", i)
	}
	return people
}

func listings(people []events.Entry, revision int64) (all []events.Event) {
	for _, e := range people {
		all = append(all, events.StateEvent(events.Revised(e, revision)))
	}
	return all
}

func delisting(l events.List, id string, revision int64) events.Event {
	return events.StateEvent(events.Delisting{Revision: revision, Time: eventstest.Start(), List: l, EntryID: id})
}

func ndjson(t *testing.T, all ...events.Event) string {
	t.Helper()
	var out strings.Builder
	for _, e := range all {
		line, err := events.Encode(e)
		require.NoError(t, err)
		out.Write(append(line, '\n'))
	}
	return out.String()
}

// exportedIDs are the entries that an export lists.
func exportedIDs(t *testing.T, export string) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for line := range strings.Lines(export) {
		e, err := events.Decode([]byte(strings.TrimSpace(line)))
		require.NoError(t, err)
		if entry, ok := e.Data.(events.Entry); ok {
			ids[string(entry.List)+"/"+entry.EntryID] = true
		}
	}
	return ids
}
