package readmodel

import (
	"hash/maphash"
	"slices"

	"example.org/registry/events"
	"example.org/registry/readmodel/btree"
)

// idIndex finds numbers by string ids: a tree by the ids' hashes. A map could not be shared with a
// view without a copy of the whole. The seed is random, so nobody can choose ids that collide. Ids
// may still do so by chance: whoever finds checks the id.
type idIndex struct {
	seed maphash.Seed
	tree btree.Tree
}

func newIDIndex() idIndex { return idIndex{seed: maphash.MakeSeed()} }

func (x *idIndex) snapshot() idIndex { return idIndex{x.seed, x.tree.Snapshot()} }

func (x *idIndex) item(id string, n uint32) btree.Item {
	return btree.Item{Key: maphash.String(x.seed, id), Slot: n}
}

func (x *idIndex) insert(id string, n uint32) { x.tree.Insert(x.item(id, n), btree.ByKey) }
func (x *idIndex) delete(id string, n uint32) { x.tree.Delete(x.item(id, n), btree.ByKey) }

// find calls f with every number that may be that of id.
func (x *idIndex) find(id string, f func(n uint32)) { x.tree.Find(maphash.String(x.seed, id), f) }

// reload builds the tree from the rows of all lists and an id of each.
func (x *idIndex) reload(lists *[events.NumLists]*catalogue, id func(*Row) string) {
	var items []btree.Item
	for _, l := range lists {
		for _, cl := range l.cells {
			if cl.row != nil {
				items = append(items, x.item(id(cl.row), uint32(cl.row.ref())))
			}
		}
	}
	slices.SortFunc(items, btree.ByKey)
	x.tree.Load(items)
}

// rowRef names a row of any list: the list in the top two bits, its slot in the others.
type rowRef uint32

// slotBits leaves a list 2^30 slots, and room for four lists.
const slotBits = 30

const _ = uint(1<<(32-slotBits) - events.NumLists) // more lists do not compile

func newRowRef(list int, slot uint32) rowRef { return rowRef(uint32(list)<<slotBits | slot) }

func (r rowRef) list() int    { return int(r >> slotBits) }
func (r rowRef) slot() uint32 { return uint32(r) & (1<<slotBits - 1) }

// chatIDs finds the rows of a chat id, in whatever list.
type chatIDs struct{ idIndex }

func (c *chatIDs) apply(ch rowChange) {
	if ch.old != nil && ch.row != nil && ch.old.chatID() == ch.row.chatID() {
		return
	}
	if ch.old != nil {
		c.delete(ch.old.chatID(), uint32(ch.old.ref()))
	}
	if ch.row != nil {
		c.insert(ch.row.chatID(), uint32(ch.row.ref()))
	}
}

func (c *chatIDs) reload(lists *[events.NumLists]*catalogue) { c.idIndex.reload(lists, (*Row).chatID) }

// withChatID calls f with every row, shown or not, that has that very chat id.
func (v *View) withChatID(id string, f func(list int, r *Row)) {
	v.chatIDs.find(id, func(n uint32) {
		ref := rowRef(n)
		if r := v.row(ref); r.chatID() == id {
			f(ref.list(), r)
		}
	})
}

// entryIDs finds the row of an entry id. An entry id is one entry's within its list, and several lists may
// have the same.
type entryIDs struct{ idIndex }

func (e *entryIDs) apply(ch rowChange) {
	switch {
	case ch.old == nil:
		e.insert(ch.row.ID(), uint32(ch.row.ref()))
	case ch.row == nil:
		e.delete(ch.old.ID(), uint32(ch.old.ref()))
	} // else it has kept its slot
}

func (e *entryIDs) reload(lists *[events.NumLists]*catalogue) { e.idIndex.reload(lists, (*Row).ID) }

// withEntryID returns the list's row of that very entry id, shown or not, or nil.
func (v *View) withEntryID(list int, id string) (found *Row) {
	v.entryIDs.find(id, func(n uint32) {
		if ref := rowRef(n); ref.list() == list {
			if r := v.row(ref); r.ID() == id {
				found = r
			}
		}
	})
	return found
}

// slotNumbers hands out the lowest numbers that it can.
type slotNumbers struct {
	free []uint32 // given back
	next uint32   // the first never used
}

func (s *slotNumbers) take() uint32 {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot
	}
	s.next++
	return s.next - 1
}

func (s *slotNumbers) giveBack(slot uint32) { s.free = append(s.free, slot) }

// donations holds the donations by id.
type donations struct {
	ids     idIndex
	values  cowSlice[*donation]
	numbers slotNumbers // of the owner
}

type donation struct {
	events.Donation
	digest Digest
}

func newDonations() donations { return donations{ids: newIDIndex()} }

func (d *donations) snapshot() donations {
	return donations{ids: d.ids.snapshot(), values: d.values.snapshot()}
}

// get returns the donation of an id and its slot; nil if there is none.
func (d *donations) get(id string) (found *donation, slot uint32) {
	d.ids.find(id, func(n uint32) {
		if v := d.values.get(n); v.DonationID == id {
			found, slot = v, n
		}
	})
	return found, slot
}

// set replaces the donation of an id, or removes it if to is nil. It returns the old one, or nil.
func (d *donations) set(id string, to *donation) (old *donation) {
	old, slot := d.get(id)
	switch {
	case old == nil && to == nil:
		return nil
	case old == nil:
		slot = d.numbers.take()
		d.ids.insert(id, slot)
	case to == nil:
		d.ids.delete(id, slot)
		d.numbers.giveBack(slot)
	}
	d.values.set(slot, to)
	return old
}

// all calls f with every donation, in no particular order.
func (d *donations) all(f func(*donation)) {
	d.ids.tree.Ascend(0, func(slot uint32) bool { f(d.values.get(slot)); return true })
}
