package readmodel

import (
	"hash/maphash"

	"example.org/registry/readmodel/btree"
)

// idIndex finds numbers by string ids: it is a tree of the ids' hashes. Sharing a map with a view
// would mean copying it. Hashes may collide, so the caller checks the id.
type idIndex struct {
	hash func(id string) uint64
	tree btree.Tree
}

// newIDIndex returns an empty index with a random hash, so that no publisher can choose ids that
// collide.
func newIDIndex() idIndex {
	seed := maphash.MakeSeed()
	return idIndex{hash: func(id string) uint64 { return maphash.String(seed, id) }}
}

func (x *idIndex) snapshot() idIndex { return idIndex{x.hash, x.tree.Snapshot()} }

func (x *idIndex) item(id string, n uint32) btree.Item {
	return btree.Item{Key: x.hash(id), Slot: n}
}

func (x *idIndex) insert(id string, n uint32) { x.tree.Insert(x.item(id, n), btree.ByKey) }
func (x *idIndex) delete(id string, n uint32) { x.tree.Delete(x.item(id, n), btree.ByKey) }

// find calls f with every number that may belong to id.
func (x *idIndex) find(id string, f func(n uint32)) { x.tree.Find(x.hash(id), f) }

// row returns the row of an entry id in an index of slots, or nil.
func (x *idIndex) row(rows *cowSlice[*Row], id string) (found *Row) {
	x.find(id, func(slot uint32) {
		if r := rows.get(slot); r.ID() == id {
			found = r
		}
	})
	return found
}

// load replaces the content by items, and sorts them.
func (x *idIndex) load(items []btree.Item, s *scratch) {
	s.sorter.Sort(items, nil, btree.ByKey)
	x.tree.Load(items)
}

// slotNumbers allocates the lowest free numbers.
type slotNumbers struct {
	free []uint32 // released numbers
	next uint32   // the lowest number never used
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

// taken returns how many are in use.
func (s *slotNumbers) taken() int { return int(s.next) - len(s.free) }

func (s *slotNumbers) giveBack(slot uint32) { s.free = append(s.free, slot) }

// byID holds values by their ids. One goroutine owns it; any may read a snapshot.
type byID[T interface {
	comparable // its zero value stands for no value
	id() string
}] struct {
	ids     idIndex
	values  cowSlice[T]
	numbers slotNumbers // used by the owner only
}

func (x *byID[T]) snapshot() byID[T] {
	return byID[T]{ids: x.ids.snapshot(), values: x.values.snapshot()}
}

func (x *byID[T]) count() int { return x.ids.tree.Len(btree.All) }

// get returns the value of an id and its slot, or zero if there is none.
func (x *byID[T]) get(id string) (found T, slot uint32) {
	x.ids.find(id, func(n uint32) {
		if v := x.values.get(n); v.id() == id {
			found, slot = v, n
		}
	})
	return found, slot
}

// replace replaces old by to, or removes it if to is zero: get has returned old, which may be zero,
// and slot. It returns the slot of both.
func (x *byID[T]) replace(id string, old T, slot uint32, to T) uint32 {
	var none T
	switch {
	case old == none && to == none:
		return 0
	case old == none:
		slot = x.numbers.take()
		x.ids.insert(id, slot)
	case to == none:
		x.ids.delete(id, slot)
		x.numbers.giveBack(slot)
	}
	x.values.set(slot, to)
	return slot
}

// all calls f with every value, in no particular order.
func (x *byID[T]) all(f func(T)) {
	x.ids.tree.Ascend(btree.All, 0, func(slot uint32) bool { f(x.values.get(slot)); return true })
}
