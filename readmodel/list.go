package readmodel

import (
	"context"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

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
		p, err = v.list(q.List).search(ctx, &q)
	default:
		p = v.list(q.List).walk(&q)
	}
	p.HasMore = q.Skip+len(p.Rows) < p.Total
	return p, err
}

func (l *listView) tree(q *ListQuery) (t *tree, descending bool) {
	o, descending := q.Sort.order()
	return l.trees[treeIndex(o, q.Status, q.Proofs)], descending
}

// walk jumps to the first row of the page and takes the page from there.
func (l *listView) walk(q *ListQuery) Page {
	t, descending := l.tree(q)
	total := t.Len()
	n := min(q.Limit, total-q.Skip)
	if n <= 0 {
		return Page{Total: total}
	}
	p := Page{Rows: make([]*Row, 0, n), Total: total}
	take := func(it item) bool {
		p.Rows = append(p.Rows, it.row)
		return len(p.Rows) < n
	}
	if descending {
		first, _ := t.GetAt(total - 1 - q.Skip)
		t.Descend(first, take)
	} else {
		first, _ := t.GetAt(q.Skip)
		t.Ascend(first, take)
	}
	return p
}

// search scans the whole order: every row is asked, so that the total is exact.
func (l *listView) search(ctx context.Context, q *ListQuery) (Page, error) {
	needle := Fold(q.Search)
	rows := make([]*Row, 0, q.Limit)
	total := 0
	err := l.scan(ctx, q, func(r *Row) {
		if !strings.Contains(r.text(), needle) {
			return
		}
		if total >= q.Skip && len(rows) < q.Limit {
			rows = append(rows, r)
		}
		total++
	})
	return Page{Rows: rows, Total: total}, err
}

// scan calls f with every row of the order and filters that q asks for.
func (l *listView) scan(ctx context.Context, q *ListQuery, f func(r *Row)) error {
	t, descending := l.tree(q)
	seen := 0
	visit := func(it item) bool {
		f(it.row)
		seen++
		return seen%1024 != 0 || ctx.Err() == nil
	}
	if descending {
		t.Reverse(visit)
	} else {
		t.Scan(visit)
	}
	return ctx.Err()
}

// listByID finds the rows of the list with that very chat id; there are seldom more than one.
func (v *View) listByID(q *ListQuery) Page {
	rows := slices.DeleteFunc(v.withChatID(q.ID), func(r *Row) bool {
		return int(r.list) != listIndex(q.List) || !r.matches(q.Status, q.Proofs)
	})
	v.list(q.List).sort(rows, q.Sort)
	total := len(rows)
	rows = rows[min(q.Skip, total):]
	return Page{Rows: rows[:min(q.Limit, len(rows))], Total: total}
}

// withChatID is every row, of whatever list, with that very chat id. The caller owns the result.
func (v *View) withChatID(id string) []*Row {
	var rows []*Row
	key := maphash.String(v.seed, id)
	v.byChat.Ascend(item{key: key}, func(it item) bool {
		if it.key == key && it.row.chatID() == id {
			rows = append(rows, it.row)
		}
		return it.key == key
	})
	return rows
}

// sort puts rows of the list into the order of s.
func (l *listView) sort(rows []*Row, s Sort) {
	if len(rows) < 2 {
		return
	}
	o, descending := s.order()
	slices.SortFunc(rows, func(a, b *Row) int {
		c := o.compare(itemOf(o, a, l.totals.get(a.slot)), itemOf(o, b, l.totals.get(b.slot)))
		if descending {
			return -c
		}
		return c
	})
}
