package readmodel

import "example.org/registry/events"

// RowRef is the position of a row in a model: its list in the top two bits, its slot in the others.
// Slots are small numbers. A slot may be reused after its row was removed.
type RowRef uint32

// slotBits leaves 2^30 slots for a list, and room for four lists.
const slotBits = 30

const _ = uint(1<<(32-slotBits) - events.NumLists) // more lists do not compile

// NewRowRef names a slot of a list.
func NewRowRef(list int, slot uint32) RowRef { return RowRef(uint32(list)<<slotBits | slot) }

// List returns the index of the list in events.Lists.
func (r RowRef) List() int { return int(r >> slotBits) }

// Slot returns the slot within the list.
func (r RowRef) Slot() uint32 { return uint32(r) & (1<<slotBits - 1) }

// Row returns the row at ref, shown by its list or not, or nil if there is none.
func (v *View) Row(ref RowRef) *Row { return v.lists[ref.List()].rows.get(ref.Slot()) }

// Rows calls f with every row, shown or not, list by list and in the order of slots, until f
// returns false.
func (v *View) Rows(f func(*Row) bool) {
	for _, l := range v.lists {
		for _, r := range l.rows.all() {
			if r != nil && !f(r) {
				return
			}
		}
	}
}

// ShownRows is Rows for the rows that their list shows.
func (v *View) ShownRows(f func(*Row) bool) {
	v.Rows(func(r *Row) bool { return !r.shown() || f(r) })
}
