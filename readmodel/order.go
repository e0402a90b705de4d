package readmodel

import (
	"bytes"

	"example.org/registry/events"
)

// known has what a comparison with another state of the subject needs of the known one.
type known struct {
	events.Rank
	sequence uint64 // of the last message with it; 0 if the stream is not known to hold it
	digest   Digest
	shown    bool // lists, checks or the donation's page show the subject
}

// holds reports whether r, which has the same state, says nothing new: it repeats an earlier message,
// of a stream that is read again, or was known from elsewhere.
func (k *known) holds(r *Record) bool { return r.Sequence <= k.sequence }

// knownEntry returns the known state of an entry, or false if there is none.
func knownEntry(list events.List, row *Row, stone *delisting) (known, bool) {
	switch {
	case row != nil:
		return known{events.EntryRank(row.revision, row.Verified()), row.sequence, row.digest, row.shown()}, true
	case stone != nil:
		return known{stone.rank(), stone.sequence, stone.hash(list), false}, true
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

// compare orders a record and the known state of its subject as events.Compare does, which needs
// the data of the known state only if everything else is equal.
func (c *content) compare(r *Record, k known) int {
	if order := r.rank().Compare(k.Rank); order != 0 || r.digest == k.digest {
		return order
	}
	if c.states != nil {
		if state, ok := c.states(r.Subject, k.sequence); ok {
			return bytes.Compare(r.state, state)
		}
	}
	return bytes.Compare(r.digest[:], k.digest[:])
}

// Loss is a record that is not true, since a known state is greater (events/CONTRACT.md#revisions).
type Loss struct {
	Record *Record // one of those that were applied
	Known  int64   // revision of the known state

	// Conflict: the known state has the same revision, and lists do not show the same for both.
	Conflict bool
	// Unheeded: the record would have removed what is shown, and still is.
	Unheeded bool
}

func newLoss(r *Record, k *known) Loss {
	hides := r.Removed || r.row != nil && !r.row.shown()
	return Loss{
		Record: r, Known: k.Revision,
		Conflict: k.Revision == r.Revision && (k.shown || !hides),
		Unheeded: k.Revision > r.Revision && k.shown && hides,
	}
}
