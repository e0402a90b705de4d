package readmodel

import (
	"iter"

	"example.org/registry/events"
)

// content is the state that follows from the events: the lists with their view totals, the
// tombstones and the donations, at one checkpoint. A store keeps exactly this. Everything else in a
// model is derived from it.
type content struct {
	lists      [events.NumLists]*catalog
	tombstones tombstones
	donations  donations
	checkpoint uint64
}

func newContent() content {
	c := content{tombstones: newTombstones(), donations: newDonations()}
	for i := range c.lists {
		c.lists[i] = newCatalog()
	}
	return c
}

// change is the change of one entry: of its row and view total, and of its tombstone.
type change struct {
	rowChange
	sequence uint64     // of the event
	stone    RowRef     // list and slot of the new or the removed tombstone
	wasStone *delisting // nil if there was no tombstone
	isStone  *delisting // nil if there is none now
}

// setEntry sets or removes an entry, and returns the change. A delisting leaves a tombstone, and
// the next listing removes it. In bulk setEntry leaves the orders to reload.
func (c *content) setEntry(r *Record, bulk bool) change {
	list := listIndex(r.Subject.List)
	ch := change{sequence: r.Sequence}
	ch.stone, ch.wasStone, ch.isStone = c.tombstones.apply(list, r)
	ch.rowChange = c.lists[list].setRow(r.Subject.ID, r.row, bulk)
	return ch
}

// row returns the row at ref, or nil.
func (c *content) row(ref RowRef) *Row {
	return c.lists[ref.List()].orders.rows.get(ref.Slot())
}

// rows yields every row, shown or not, list by list and in the order of slots.
func (c *content) rows() iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for _, l := range c.lists {
			for _, r := range l.orders.rows.all() {
				if r != nil && !yield(r) {
					return
				}
			}
		}
	}
}

// numRows returns how many rows the lists have.
func (c *content) numRows() (n int) {
	for _, l := range c.lists {
		n += l.slots.taken()
	}
	return n
}

// numSubjects returns how many subjects have a state or a tombstone.
func (c *content) numSubjects() int {
	n := c.numRows() + c.donations.count()
	for list, gone := range c.tombstones.counts() {
		n += gone + c.lists[list].numCounted
	}
	return n
}

// digest returns the digest of entries, view totals and donations. It does not cover tombstones:
// two contents that look the same to clients have one digest.
func (c *content) digest() Digest {
	d := c.donations.digest
	for _, l := range c.lists {
		d.Add(l.entries)
		d.Add(l.views)
	}
	return d
}

// checkTag hashes the entries of every list.
func (c *content) checkTag() string {
	var entries [events.NumLists]Digest
	for i, l := range c.lists {
		entries[i] = l.entries
	}
	return contentTag("check", entries[:]...)
}

// donations are the donations by id.
type donations struct {
	byID[*donation]
	digest  Digest
	changed bool // since the last publish
}

type donation struct {
	events.Donation
	digest Digest
}

func (d *donation) id() string { return d.DonationID }

func newDonations() donations {
	return donations{byID: byID[*donation]{ids: newIDIndex()}, changed: true}
}

// apply sets or removes a donation.
func (d *donations) apply(r *Record) {
	d.changed = true
	var to *donation
	if !r.Removed {
		to = &donation{*r.donation, r.digest}
		d.digest.Add(r.digest)
	}
	if old, _ := d.set(r.Subject.ID, to); old != nil {
		d.digest.sub(old.digest)
	}
}
