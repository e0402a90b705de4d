package readmodel

import "github.com/RoaringBitmap/roaring/v2"

// matches is the answer to a text search before filters, order and page: immutable once remembered.
type matches struct {
	slots *roaring.Bitmap // of the list; some may be empty
	tally tally           // of the rows in them
}

// tally is how many rows there are of each filterBits, so that a total is known under every filter without
// a look at the rows.
type tally [bitShown << 1]int32

// tally counts the rows in slots.
func (l *listView) tally(slots *roaring.Bitmap) (t tally) {
	slots.Iterate(func(slot uint32) bool {
		t[l.filters.get(slot)]++
		return true
	})
	return t
}

// move follows one change of a row that was, or is now, among those counted. Several changes of one slot
// come one after another, each from what the one before led to, so what lies between adds up to nothing.
func (t *tally) move(c *changed, was, is bool) {
	if was {
		t[c.before]--
	}
	if is {
		t[c.after]++
	}
}

// count is how many of the rows q's filters let through.
func (t *tally) count(q *ListQuery) (total int) {
	for f, n := range t {
		if filterBits(f).match(q.Status, q.Proofs) {
			total += int(n)
		}
	}
	return total
}
