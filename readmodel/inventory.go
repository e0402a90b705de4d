package readmodel

import (
	"cmp"
	"iter"
	"slices"

	"example.org/registry/events"
)

// Inventory is every record of a model at one sequence, for comparing two models record by record. It
// never changes; any goroutine may read it.
type Inventory struct {
	Sequence uint64
	Digest   Digest

	items     []inventoried
	donations []events.Donation
}

// inventoried is what is kept of one entry id of a list: its row as lists show it, its view total as the
// orders by views have it, or both.
type inventoried struct {
	id     string
	row    *Row // nil while not listed
	views  int64
	count  bool // views were counted
	list   uint8
	filter filterBits
}

// Inventory lists what the model holds. The owner calls it, not in bulk; or another goroutine while nothing
// is applied. It takes some 50 ns a record.
func (m *Model) Inventory() *Inventory {
	inv := &Inventory{Sequence: m.checkpoint, Digest: m.Digest()}
	for list, c := range m.lists {
		for id, cl := range c.cells {
			inv.items = append(inv.items, c.inventoried(uint8(list), id, cl))
		}
	}
	m.donations.Scan(func(d *donation) bool {
		inv.donations = append(inv.donations, d.Donation)
		return true
	})
	return inv
}

// inventoried looks where readers look: in the slots.
func (c *catalogue) inventoried(list uint8, id string, cl cell) inventoried {
	it := inventoried{id: id, views: cl.views, count: cl.views >= 0, list: list}
	if cl.row == nil {
		return it
	}
	slot := cl.row.slot
	it.row, it.filter = c.orders.rows.get(slot), c.orders.filters.get(slot)
	if it.count {
		it.views = c.totals.get(slot)
	}
	return it
}

// All is the records in the order of list, entry id and kind, donations last: the key of each, and a hash of
// everything that is kept of it, rendering included. The hashes are the same in any process of the
// same RenderVersion. One goroutine at a time; the first call sorts.
func (inv *Inventory) All() iter.Seq2[Key, Digest] {
	slices.SortFunc(inv.items, func(a, b inventoried) int {
		return cmp.Or(cmp.Compare(a.list, b.list), cmp.Compare(a.id, b.id))
	})
	return func(yield func(Key, Digest) bool) {
		for _, it := range inv.items {
			if !it.records(yield) {
				return
			}
		}
		for _, d := range inv.donations {
			k := Key{Kind: KindDonation, ID: d.DonationID}
			if !yield(k, hashState(k.Subject(), events.CanonicalData(d))) {
				return
			}
		}
	}
}

func (it *inventoried) records(yield func(Key, Digest) bool) bool {
	list := events.Lists()[it.list]
	if it.row != nil {
		k := Key{Kind: KindEntry, List: list, ID: it.id}
		kept := append(appendRow(make([]byte, 0, rowHeader+len(it.row.blob)+1), it.row), byte(it.filter))
		if !yield(k, hashState(k.Subject(), kept)) {
			return false
		}
	}
	if it.count {
		k := Key{Kind: KindViews, List: list, ID: it.id}
		return yield(k, viewsDigest(k, it.views))
	}
	return true
}

// Len is how many records there are.
func (inv *Inventory) Len() int {
	n := len(inv.donations)
	for _, it := range inv.items {
		if it.row != nil {
			n++
		}
		if it.count {
			n++
		}
	}
	return n
}
