package readmodel

import "example.org/registry/events"

// known has what a comparison with another state of the subject needs of the known one.
type known struct {
	events.Rank
	sequence uint64 // of the last message with it; 0 if the stream is not known to hold it
	shown    bool   // lists, checks or the donation's page show the subject
}

// holds reports whether r, which has the same state, says nothing new: it repeats an earlier message,
// of a stream that is read again, or was known from elsewhere.
func (k *known) holds(r *Record) bool { return r.Sequence <= k.sequence }

// knownEntry returns the known state of an entry, or false if there is none.
func knownEntry(list events.List, row *Row, stone *delisting) (known, bool) {
	switch {
	case row != nil:
		return known{row.stateRank(), row.sequence, row.shown()}, true
	case stone != nil:
		return known{stone.rank(list), stone.sequence, false}, true
	}
	return known{}, false
}

// Known returns the greatest revision that is known of a subject, or 0. The same goroutines as for
// Tombstones may call it.
func (m *Model) Known(k events.Subject) int64 {
	c := &m.content
	if k.Kind == events.KindDonation {
		if d, _ := c.donations.get(k.ID); d != nil {
			return d.revision
		}
		return 0
	}
	list := listIndex(k.List)
	row := c.lists[list].row(k.ID)
	if k.Kind == events.KindViews {
		return c.lists[list].counted(k.ID, row).revision
	}
	stone, _ := c.tombstones.lists[list].get(k.ID)
	known, _ := knownEntry(k.List, row, stone)
	return known.Revision
}

// Loss is a record that is not true, since a known state is greater (events/CONTRACT.md#revisions).
type Loss struct {
	Record *Record // one of those that were applied
	Known  int64   // revision of the known state

	// Conflict: the known state has the same revision.
	Conflict bool
	// Unheeded: the record is a removal of what is shown, and still is.
	Unheeded bool
}

func newLoss(r *Record, k *known) Loss {
	return Loss{
		Record: r, Known: k.Revision,
		Conflict: k.Revision == r.Revision,
		Unheeded: k.Revision > r.Revision && k.shown && r.Removed,
	}
}
