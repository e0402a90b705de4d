package readmodel

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// item is a row in one order. Its key decides nearly every comparison without touching the row:
// the time of the report, the view total, or the first bytes of the collation key.
type item struct {
	key uint64
	row *Row
}

// order is what a tree is sorted by; each serves two of the six sorts, read from either end.
type order uint8

const (
	byTime order = iota
	byViews
	byName
	numOrders
)

func (s Sort) order() (o order, descending bool) {
	switch s {
	case Oldest:
		return byTime, false
	case Popular:
		return byViews, true
	case PopularAsc:
		return byViews, false
	case AZ:
		return byName, false
	case ZA:
		return byName, true
	default:
		return byTime, true
	}
}

const (
	numStatus = 3
	numProofs = 3
	numTrees  = int(numOrders) * numStatus * numProofs
)

func treeIndex(o order, s Status, p Proofs) int {
	return (int(o)*numStatus+int(s))*numProofs + int(p)
}

// itemOf is r in order o, views being its view total.
func itemOf(o order, r *Row, views int64) item {
	switch o {
	case byViews:
		return item{uint64(views), r}
	case byName:
		return item{prefix(r.collation()), r}
	default:
		return item{uint64(r.reported) ^ 1<<63, r} // so that times before 1970 sort first
	}
}

// prefix is the first eight bytes of s as a number that sorts as s does.
func prefix(s string) uint64 {
	var n uint64
	for i := range 8 {
		n <<= 8
		if i < len(s) {
			n |= uint64(s[i])
		}
	}
	return n
}

// compare is the ascending order of items within o (API contract, lists: ties by _id, bytewise).
func (o order) compare(a, b item) int {
	if a.key != b.key {
		if a.key < b.key {
			return -1
		}
		return 1
	}
	if a.row == b.row {
		return 0
	}
	if o == byName {
		if c := strings.Compare(a.row.collation(), b.row.collation()); c != 0 {
			return c
		}
	}
	return strings.Compare(a.row.ID(), b.row.ID())
}

func (o order) less(a, b item) bool { return o.compare(a, b) < 0 }

// tree is a counted B-tree. A published one is never written again: the owner goes on in a copy.
type tree = btree.BTreeG[item]

func newTree(less func(a, b item) bool) *tree {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: 32})
}

// orders are the trees of one list, for every order and filter, on the owner's side.
type orders struct {
	trees [numTrees]*tree
	dirty [numTrees]bool
}

func newOrders() *orders {
	o := &orders{}
	for i := range o.trees {
		o.trees[i], o.dirty[i] = newTree(orderOf(i).less), true
	}
	return o
}

func orderOf(i int) order { return order(i / (numStatus * numProofs)) }

// each calls f with every tree of order o that holds r.
func (os *orders) each(o order, r *Row, f func(t *tree)) {
	for s := StatusAll; s <= StatusRisk; s++ {
		for p := ProofsAll; p <= ProofsPrivate; p++ {
			if r.matches(s, p) {
				i := treeIndex(o, s, p)
				os.dirty[i] = true
				f(os.trees[i])
			}
		}
	}
}

func (os *orders) insert(o order, r *Row, views int64) {
	it := itemOf(o, r, views)
	os.each(o, r, func(t *tree) { t.Set(it) })
}

func (os *orders) remove(o order, r *Row, views int64) {
	it := itemOf(o, r, views)
	os.each(o, r, func(t *tree) { t.Delete(it) })
}

// load replaces the trees of one order by those of the rows given, sorting them once.
func (os *orders) load(o order, items []item) {
	slices.SortFunc(items, o.compare)
	for s := StatusAll; s <= StatusRisk; s++ {
		for p := ProofsAll; p <= ProofsPrivate; p++ {
			i := treeIndex(o, s, p)
			os.trees[i], os.dirty[i] = loaded(o, items, s, p), true
		}
	}
}

func loaded(o order, sorted []item, s Status, p Proofs) *tree {
	t := newTree(o.less)
	for _, it := range sorted {
		if it.row.matches(s, p) {
			t.Load(it)
		}
	}
	return t
}

// publish gives the trees that changed to a view, and goes on in copies of them.
func (os *orders) publish(into *[numTrees]*tree) {
	for i, t := range os.trees {
		if os.dirty[i] {
			into[i], os.dirty[i] = t.Copy(), false
		}
	}
}
