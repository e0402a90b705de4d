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
			Data: events.Delisting{Revision: 1, List: events.Scammers, EntryID: "gone"}},
		events.Event{ID: "donation", Source: "/test", Type: events.TypeDonationUpdated,
			Data: events.Donation{Revision: 1, DonationID: "d1", Status: events.DonationPending, Amount: "1.50", Currency: "PLN",
				CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}})
	return ndjson(t, all...)
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
