package readmodel

import "strings"

// order is what a tree is sorted by; each serves two of the six sorts, read from either end.
type order uint8

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

// key is the number that r, with so many views, is sorted by first.
func (o order) key(r *Row, views int64) uint64 {
	switch o {
	case byViews:
		return uint64(views)
	case byName:
		return prefix(r.collation())
	default:
		return uint64(r.reported) ^ 1<<63 // so that times before 1970 sort first
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

// tie decides between rows of equal keys (API contract, lists: ties by _id, bytewise). Names of
// equal keys may differ further on.
func (o order) tie(a, b *Row) int {
	if o == byName {
		if c := strings.Compare(a.collation(), b.collation()); c != 0 {
			return c
		}
	}
	return strings.Compare(a.ID(), b.ID())
}

const (
	numStatus = 3
	numProofs = 3
	numTrees  = int(numOrders) * numStatus * numProofs
)

func treeIndex(o order, s Status, p Proofs) int {
	return (int(o)*numStatus+int(s))*numProofs + int(p)
}

// treeOf is the inverse of treeIndex.
func treeOf(i int) (order, Status, Proofs) {
	return order(i / (numStatus * numProofs)), Status(i / numProofs % numStatus), Proofs(i % numProofs)
}
