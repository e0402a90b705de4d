package readmodel

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

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

// pageOf is the page that q asks for of the rows in m. Many rows are found by walking the order
// until the page is full; few are taken out and sorted.
func (l *listView) pageOf(m *matches, q *ListQuery) Page {
	total := m.tally.count(q)
	n := min(q.Limit, total-q.Skip)
	if n <= 0 {
		return Page{Total: total}
	}
	// Sorting costs about ten times as much a row as walking past one.
	if steps := (q.Skip + n) * l.size(q) / total; steps < 10*total {
		return Page{Rows: l.walkThrough(m.slots, q, n), Total: total}
	}
	rows := make([]*Row, 0, total)
	m.slots.Iterate(func(slot uint32) bool {
		if r := l.rows.get(slot); r != nil && r.matches(q.Status, q.Proofs) {
			rows = append(rows, r)
		}
		return true
	})
	l.sort(rows, q.Sort)
	return Page{Rows: slices.Clip(rows[q.Skip : q.Skip+n]), Total: total}
}

func (l *listView) walkThrough(slots *roaring.Bitmap, q *ListQuery, n int) []*Row {
	rows := make([]*Row, 0, n)
	skip := q.Skip
	l.eachSlot(q, 0, func(slot uint32) bool {
		if !slots.Contains(slot) {
			return true
		}
		if skip > 0 {
			skip--
			return true
		}
		rows = append(rows, l.rows.get(slot))
		return len(rows) < n
	})
	return rows
}
