package readmodel

import (
	"encoding/binary"
	"strings"

	"github.com/tidwall/btree"

	"example.org/registry/events"
)

// tree holds rows in an order. A copy takes no time: it shares all nodes, and whoever changes one
// copies it first. So the owner's trees change while any number of goroutines read a view's.
type tree = btree.BTreeG[item]

// item is a row in a tree: by key, then by list and entry id.
type item struct {
	key   uint64
	row   *Row // nil in what is looked for: it comes before all others
	slot  uint32
	class filterBits
}

func itemOf(key uint64, r *Row) item { return item{key, r, r.slot, r.filter} }

func newTree(isLess func(a, b item) bool) *tree {
	return btree.NewBTreeGOptions(isLess, btree.Options{NoLocks: true})
}

// isLessByID orders items by key, list and entry id.
func isLessByID(a, b item) bool {
	switch {
	case a.key != b.key:
		return a.key < b.key
	case a.row == nil || b.row == nil:
		return a.row == nil && b.row != nil
	case a.row.list != b.row.list:
		return a.row.list < b.row.list
	default:
		return a.row.id < b.row.id
	}
}

// isLessByName orders items of one list by name, whose first bytes are the key.
func isLessByName(a, b item) bool {
	if a.key != b.key || a.row == nil || b.row == nil {
		return isLessByID(a, b)
	}
	if c := strings.Compare(a.row.collation, b.row.collation); c != 0 {
		return c < 0
	}
	return a.row.id < b.row.id
}

// firstBytes returns a number that sorts as the first eight bytes of s do.
func firstBytes(s string) uint64 {
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}

// eachFrom calls f with the items of t from position skip on, from the end backwards if descending, until
// f returns false.
func eachFrom(t *tree, skip int, descending bool, f func(it item) bool) {
	if descending {
		skip = t.Len() - 1 - skip
	}
	first, ok := t.GetAt(skip)
	if !ok {
		return
	}
	if descending {
		t.Descend(first, f)
	} else {
		t.Ascend(first, f)
	}
}

// refs finds shown rows by hashes. Each of its numbers has the first bits of a hash, then the list of a row,
// and then its slot; hashes may collide, so the row decides.
type refs = btree.Set[uint64]

const (
	slotBits = 28
	refBits  = slotBits + 2

	_ = uint(1<<(refBits-slotBits) - events.NumLists) // more lists do not compile
)

func refOf(hash uint64, r *Row) uint64 {
	return hash>>refBits<<refBits | uint64(r.list)<<slotBits | uint64(r.slot)
}

// eachWith calls f with the rows that x has with a hash until it returns false.
func (s *state) eachWith(x *refs, hash uint64, f func(r *Row) bool) {
	first := hash >> refBits << refBits
	x.Ascend(first, func(ref uint64) bool { return ref>>refBits == first>>refBits && f(s.rowAt(ref)) })
}

// rowAt returns the row of a number in refs.
func (s *state) rowAt(ref uint64) *Row {
	return s.lists[ref>>slotBits&(1<<(refBits-slotBits)-1)].rows.get(uint32(ref & (1<<slotBits - 1)))
}
