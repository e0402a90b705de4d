package readmodel

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"example.org/registry/events"
)

// Page is a part of a list and what it is a part of. Its rows belong to one view.
type Page struct {
	Rows    []*Row
	Total   int  // of all that match
	HasMore bool // there are more after this page
}

// AppendJSON appends the page as the seed's ListResponse: the entries' ready JSON, joined.
func (p Page) AppendJSON(dst []byte) []byte {
	dst = appendRows(append(dst, `{"data":`...), p.Rows)
	dst = strconv.AppendInt(append(dst, `,"total":`...), int64(p.Total), 10)
	dst = appendBool(append(dst, `,"hasMore":`...), p.HasMore)
	return append(dst, '}')
}

func appendRows(dst []byte, rows []*Row) []byte {
	dst = append(dst, '[')
	for i, r := range rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, r.JSON()...)
	}
	return append(dst, ']')
}

// List answers one page of a list. The only error is ctx's: a search stops when its reader has gone.
func (v *View) List(ctx context.Context, q ListQuery) (Page, error) {
	if q.List == events.Legit {
		q.Status = StatusVerified // the only ones that legit ever shows
	}
	var p Page
	var err error
	switch {
	case q.ID != "":
		p = v.listByID(&q)
	case q.Search != "":
		p, err = v.search(ctx, &q)
	default:
		p = v.list(q.List).walk(&q)
	}
	p.HasMore = q.Skip+len(p.Rows) < p.Total
	return p, err
}

// each calls f with the rows of the order and filters that q asks for, from position skip on,
// until f returns false.
func (l *listView) each(q *ListQuery, skip int, f func(r *Row) bool) {
	l.eachSlot(q, skip, func(slot uint32) bool { return f(l.rows.get(slot)) })
}

// eachSlot is each without a look at the rows.
func (l *listView) eachSlot(q *ListQuery, skip int, f func(slot uint32) bool) {
	o, descending := q.Sort.order()
	t := &l.trees[treeIndex(o, q.Status, q.Proofs)]
	if descending {
		t.descend(skip, f)
	} else {
		t.ascend(skip, f)
	}
}

// size is how many rows q's filters let through.
func (l *listView) size(q *ListQuery) int {
	o, _ := q.Sort.order()
	return l.trees[treeIndex(o, q.Status, q.Proofs)].count
}

// walk jumps to the first row of the page and takes the page from there.
func (l *listView) walk(q *ListQuery) Page {
	total := l.size(q)
	n := min(q.Limit, total-q.Skip)
	if n <= 0 {
		return Page{Total: total}
	}
	p := Page{Rows: make([]*Row, 0, n), Total: total}
	l.each(q, q.Skip, func(r *Row) bool {
		p.Rows = append(p.Rows, r)
		return len(p.Rows) < n
	})
	return p
}

// listByID finds the rows of the list with that very chat id; there are seldom more than one.
func (v *View) listByID(q *ListQuery) Page {
	var rows []*Row
	v.withChatID(q.ID, func(list int, r *Row) {
		if list == listIndex(q.List) && r.matches(q.Status, q.Proofs) {
			rows = append(rows, r)
		}
	})
	v.list(q.List).sort(rows, q.Sort)
	total := len(rows)
	rows = rows[min(q.Skip, total):]
	return Page{Rows: rows[:min(q.Limit, len(rows))], Total: total}
}

// sort puts rows of the list into the order of s.
func (l *listView) sort(rows []*Row, s Sort) {
	if len(rows) < 2 {
		return
	}
	type keyed struct {
		key uint64
		row *Row
	}
	o, descending := s.order()
	all := make([]keyed, len(rows))
	for i, r := range rows {
		all[i] = keyed{o.key(r, l.totals.get(r.slot)), r}
	}
	slices.SortFunc(all, func(a, b keyed) int {
		if descending {
			a, b = b, a
		}
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return o.tie(a.row, b.row)
	})
	for i, k := range all {
		rows[i] = k.row
	}
}
