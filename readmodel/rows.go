package readmodel

import "example.org/registry/events"

// An index's access to a model: its rows, by RowRef, and the changed ones (package indexing).

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

// SameModel reports whether both views belong to one model, so that a RowRef means the same in
// both.
func (v *View) SameModel(o *View) bool { return v.memory == o.memory }

// Row returns the row at ref, shown by its list or not, or nil if there is none.
func (v *View) Row(ref RowRef) *Row { return v.lists[ref.List()].rows.get(ref.Slot()) }

// ShownAt returns the row at ref, or nil if there is none or its list does not show it.
func (v *View) ShownAt(ref RowRef) *Row {
	if r := v.Row(ref); r != nil && r.shown() {
		return r
	}
	return nil
}

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

// Version counts the changes of rows up to the view, in its model. Unlike Sequence it grows with
// every change: a stream that is read again has other messages at the same sequences.
func (v *View) Version() uint64 { return v.changes.version }

// ChangedSince returns the slots whose rows have changed after a version, some of them twice. It
// returns false if the model no longer knows: it retains at least the last 32,768 changes, and none
// from before it was loaded.
func (v *View) ChangedSince(version uint64) (refs []RowRef, ok bool) {
	changes, ok := v.changes.since(version)
	for _, c := range changes {
		refs = append(refs, c.ref)
	}
	return refs, ok
}
