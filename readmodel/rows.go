package readmodel

import "example.org/registry/events"

// What an index sees of a model: its rows, by place, and which of them have changed (package
// indexing).

// RowRef is the place of a row in a model: its list in the top two bits, its slot in the others.
// Slots are small numbers. Another row may take the place of one that is gone.
type RowRef uint32

// slotBits leaves a list 2^30 slots, and room for four lists.
const slotBits = 30

const _ = uint(1<<(32-slotBits) - events.NumLists) // more lists do not compile

// NewRowRef names a slot of a list.
func NewRowRef(list int, slot uint32) RowRef { return RowRef(uint32(list)<<slotBits | slot) }

// List returns the index of the list in events.Lists.
func (r RowRef) List() int { return int(r >> slotBits) }

// Slot returns the place within the list.
func (r RowRef) Slot() uint32 { return uint32(r) & (1<<slotBits - 1) }

// SameModel reports whether both views are of one model, so that a RowRef means the same in both.
func (v *View) SameModel(o *View) bool { return v.text == o.text }

// Row returns the row in a place, whether its list shows it or not; nil: there is none.
func (v *View) Row(ref RowRef) *Row { return v.lists[ref.List()].rows.get(ref.Slot()) }

// ShownAt returns the row in a place, or nil if there is none that its list shows.
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

// ShownRows calls f with every row that its list shows, as Rows does.
func (v *View) ShownRows(f func(*Row) bool) {
	v.Rows(func(r *Row) bool { return !r.shown() || f(r) })
}

// ChangedSince returns the places whose rows have changed after sequence, some of them twice, or
// false if that is no longer known: the last 32,768 changes are, and none from before the model was
// loaded.
func (v *View) ChangedSince(sequence uint64) (refs []RowRef, ok bool) {
	changes, ok := v.changes.since(sequence)
	for _, c := range changes {
		refs = append(refs, c.ref)
	}
	return refs, ok
}
