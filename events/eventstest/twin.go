package eventstest

import (
	"cmp"
	"slices"

	"example.org/registry/events"
)

// Twin is a naive read model: the last state of each subject, in maps. One goroutine at a time may
// use it.
type Twin struct {
	Entries   map[events.Subject]events.Entry // only listed entries
	Views     map[events.Subject]int64
	Donations map[string]events.Donation // by id
}

// NewTwin returns the Twin of an empty stream.
func NewTwin() *Twin {
	return &Twin{map[events.Subject]events.Entry{}, map[events.Subject]int64{}, map[string]events.Donation{}}
}

// Apply applies the data of a valid event.
func (w *Twin) Apply(data events.Data) {
	switch d := data.(type) {
	case events.Entry:
		w.Entries[d.Subject()] = d
	case events.Delisting:
		delete(w.Entries, d.Subject())
	case events.Views:
		w.Views[d.Subject()] = d.Views
	case events.Donation:
		w.Donations[d.DonationID] = d
	case events.DonationRemoval:
		delete(w.Donations, d.DonationID)
	}
}

// Shown returns the current state of an entry of which e is any state. shown is false if the list does not
// show it.
func (w *Twin) Shown(e events.Entry) (current events.Entry, shown bool) {
	current, listed := w.Entries[e.Subject()]
	mayShow := current.Verified || !current.List.Trusted()
	return current, listed && mayShow
}

// List returns the entries that a list shows: most viewed first if popular is set, else newest
// first.
func (w *Twin) List(list events.List, popular bool) []events.Entry {
	var out []events.Entry
	for _, e := range w.Entries {
		if _, shown := w.Shown(e); shown && e.List == list {
			out = append(out, e)
		}
	}

	slices.SortFunc(out, func(a, b events.Entry) int {
		order := b.ReportedAt.Compare(a.ReportedAt)
		if popular {
			order = cmp.Compare(w.countViews(b), w.countViews(a))
		}
		return cmp.Or(order, cmp.Compare(b.EntryID, a.EntryID))
	})
	return out
}

func (w *Twin) countViews(e events.Entry) int64 {
	return w.Views[events.Views{List: e.List, EntryID: e.EntryID}.Subject()]
}
