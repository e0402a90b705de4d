package readmodel

import (
	"encoding/binary"
	"iter"
	"strings"

	"github.com/tidwall/btree"
)

// tree holds rows in an order. A copy takes little time: it shares all nodes, and a change copies the nodes
// that it touches. So the owner changes its trees while any number of goroutines read the trees of a view.
type tree = btree.BTreeG[item]

// item is a row in a tree, sorted by key first. slot and filter are copies of the row's.
type item struct {
	key    uint64
	row    *Row
	slot   uint32
	filter filterBits
}

func itemOf(key uint64, r *Row) item { return item{key: key, row: r, slot: r.slot, filter: r.filter} }

func newTree(isLess func(a, b item) bool) *tree {
	return btree.NewBTreeGOptions(isLess, btree.Options{NoLocks: true})
}

// isLessByKey orders items of one list by key. The entry id breaks ties.
func isLessByKey(a, b item) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return a.row.id < b.row.id
}

// isLessByCollation orders items of one list by Row.collation, whose first bytes are the key. The entry id breaks ties.
func isLessByCollation(a, b item) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	if c := strings.Compare(a.row.collation, b.row.collation); c != 0 {
		return c < 0
	}
	return a.row.id < b.row.id
}

// order selects the tree of a list. Each tree serves two sorts: a page is read from its start or from its end.
type order uint8

const (
	byTime order = iota
	byViews
	byName
	numOrders
)

// sortKey returns the key of the item of r, which has a view total of views.
func (o order) sortKey(r *Row, views int64) uint64 {
	switch o {
	case byViews:
		return uint64(views)
	case byName:
		var start [8]byte
		copy(start[:], r.collation)
		return binary.BigEndian.Uint64(start[:])
	default: // byTime
		return uint64(r.reported) ^ 1<<63 // with the sign bit flipped, times before 1970 come first
	}
}

// rowIndex finds shown rows by hashes. A key consists of the first bits of a hash, the list of a row, and the
// slot of the row.
type rowIndex struct{ rows *btree.Map[uint64, *Row] }

const (
	slotBits = 28
	listBits = 2
)

func newRowIndex() rowIndex { return rowIndex{&btree.Map[uint64, *Row]{}} }

func rowKey(hash uint64, r *Row) uint64 {
	const lowBits = slotBits + listBits
	return hash>>lowBits<<lowBits | uint64(r.list)<<slotBits | uint64(r.slot)
}

func (x rowIndex) add(hash uint64, r *Row)    { x.rows.Set(rowKey(hash, r), r) }
func (x rowIndex) remove(hash uint64, r *Row) { x.rows.Delete(rowKey(hash, r)) }
func (x rowIndex) copyForView() rowIndex      { return rowIndex{x.rows.Copy()} }

// find yields the rows that were added with a hash. It may also yield rows of a hash with the same first 34 bits,
// which the caller must leave out.
func (x rowIndex) find(hash uint64) iter.Seq[*Row] {
	return x.withPrefix(hash, 64-slotBits-listBits)
}

// withPrefix yields the rows that were added with a hash of the same first bits as hash.
func (x rowIndex) withPrefix(hash uint64, bits int) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		lowBits := 64 - bits // not compared
		x.rows.Ascend(hash>>lowBits<<lowBits, func(key uint64, r *Row) bool {
			return key>>lowBits == hash>>lowBits && yield(r)
		})
	}
}
