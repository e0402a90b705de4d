package readmodel

import (
	"iter"
	"strings"

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
	lacking    lacking // the subjects whose state has sequence 0
}

func newContent() content {
	c := content{tombstones: newTombstones(), donations: newDonations(), lacking: lacking{subjects: map[events.Subject]struct{}{}}}
	for i := range c.lists {
		c.lists[i] = newCatalog()
	}
	return c
}

// change is the change of one entry: of its row and view total, and of its tombstone.
type change struct {
	rowChange
	stone    RowRef     // list and slot of the new or the removed tombstone
	wasStone *delisting // nil if there was no tombstone
	isStone  *delisting // nil if there is none now
}

// setEntry sets or removes an entry, and returns the change. If the known state wins against r, it
// returns that and changes nothing. A delisting leaves a tombstone, and the next listing removes it. In
// bulk setEntry leaves the orders to reload.
func (c *content) setEntry(r *Record, bulk bool) (ch change, lost *known) {
	list := listIndex(r.Subject.List)
	was, slot := c.tombstones.lists[list].get(r.Subject.ID)
	old := c.lists[list].row(r.Subject.ID)
	if k, ok := knownEntry(r.Subject.List, old, was); ok {
		if order := r.rank().Compare(k.Rank); order < 0 {
			return ch, new(k)
		} else if order == 0 && k.holds(r) {
			return ch, nil
		}
	}
	c.lacking.found(r)
	ch = change{wasStone: was}
	ch.stone, ch.isStone = c.tombstones.apply(list, r, was, slot)
	ch.rowChange = c.lists[list].setRow(r.Subject.ID, old, r.row, bulk)
	return ch, nil
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

// digest returns the digest of all states with their revisions, removals included.
func (c *content) digest() Digest {
	d := c.donations.states
	d.Add(c.tombstones.states)
	for _, l := range c.lists {
		d.Add(l.states)
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

// donations are the donations by id, removed ones included.
type donations struct {
	byID[*donation]
	states  Digest // of all, with their revisions
	changed bool   // since the last publish
}

// donation is the state of a donation, or its tombstone.
type donation struct {
	donationID string
	sequence   uint64
	state      *events.Donation // nil of a removed one
	revision   int64
	hash       events.Hash
}

func (d *donation) id() string { return d.donationID }

func (d *donation) subject() events.Subject {
	return events.Subject{Kind: events.KindDonation, ID: d.donationID}
}

func (d *donation) removal() events.DonationRemoval {
	return events.DonationRemoval{DonationID: d.donationID, Revision: d.revision}
}

func newDonations() donations {
	return donations{byID: byID[*donation]{ids: newIDIndex()}, changed: true}
}

// setDonation sets a donation. If the known state wins against r, it returns that and changes nothing.
func (c *content) setDonation(r *Record) (lost *known) {
	d := &c.donations
	old, slot := d.get(r.Subject.ID)
	if old != nil {
		k := known{events.Rank{Revision: old.revision, Removal: old.state == nil, Hash: old.hash}, old.sequence, old.state != nil}
		if order := r.rank().Compare(k.Rank); order < 0 {
			return new(k)
		} else if order == 0 && k.holds(r) {
			return nil
		}
		d.states.sub(Digest(old.hash))
	}
	c.lacking.found(r)
	d.changed = true
	d.states.Add(r.Digest())
	d.replace(r.Subject.ID, old, slot, &donation{strings.Clone(r.Subject.ID), r.Sequence, r.donation, r.Revision, r.hash})
	return nil
}
