package readmodel

import (
	"context"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"example.org/registry/readmodel/gramindex"
)

// search answers a page of the rows whose text contains what is searched for.
func (v *View) search(ctx context.Context, q *ListQuery) (Page, error) {
	slots, err := v.matching(ctx, searchKey{listIndex(q.List), gramindex.All, Fold(q.Search)})
	if err != nil {
		return Page{}, err
	}
	return v.list(q.List).pageOf(slots, q), nil
}

// matching is exactly the listed rows of a list whose text contains a needle, by slot; some slots may
// be empty. The caller only reads it. Its error is ctx's.
//
// An answer is made of what is remembered or what the index finds, plus what has changed since,
// each change looked at in this view's own rows; or of a look at every row. So neither being behind
// nor being away changes an answer (promise 6).
func (v *View) matching(ctx context.Context, k searchKey) (*roaring.Bitmap, error) {
	if r, ok := v.accelerator.remembered.GetIfPresent(k); ok && r.sequence <= v.sequence {
		if slots, ok := v.after(k, r.slots, r.sequence); ok {
			if slots != r.slots {
				v.accelerator.remember(k, v.sequence, slots)
			}
			v.accelerator.hits.Add(1)
			return slots, nil
		}
	}
	v.accelerator.misses.Add(1)
	slots, err := v.find(ctx, k)
	if err == nil {
		v.accelerator.remember(k, v.sequence, slots)
	}
	return slots, err
}

// after is slots, true at sequence, brought to this view: a copy where anything changed.
func (v *View) after(k searchKey, slots *roaring.Bitmap, sequence uint64) (*roaring.Bitmap, bool) {
	changes, ok := v.changes.since(sequence)
	if !ok {
		return nil, false
	}
	rows, own := &v.lists[k.list].rows, false
	for _, c := range changes {
		if c.list() != k.list {
			continue
		}
		r := rows.get(c.slot())
		if is := r != nil && k.in(r); is != slots.Contains(c.slot()) {
			if !own {
				slots, own = slots.Clone(), true
			}
			if is {
				slots.Add(c.slot())
			} else {
				slots.Remove(c.slot())
			}
		}
	}
	return slots, true
}

// in says whether the row's text contains the needle.
func (k *searchKey) in(r *Row) bool {
	if k.text == gramindex.Names {
		return strings.Contains(r.nameAndChat(), k.needle)
	}
	return strings.Contains(r.text(), k.needle)
}

// find asks the index, or every row where there is no index that this view can use.
func (v *View) find(ctx context.Context, k searchKey) (*roaring.Bitmap, error) {
	x := v.accelerator.index.Load()
	if x == nil {
		return v.look(ctx, k)
	}
	if _, ok := v.changes.since(x.sequence); !ok {
		return v.look(ctx, k)
	}
	slots, err := v.ask(ctx, x, k)
	if err == nil {
		slots, _ = v.after(k, slots, x.sequence)
	}
	return slots, err
}

// ask takes the index's candidates and keeps those that contain the needle.
func (v *View) ask(ctx context.Context, x *textIndex, k searchKey) (*roaring.Bitmap, error) {
	rows, slots := &v.lists[k.list].rows, roaring.New()
	var found gramindex.Set
	var kept []uint32
	for i := range x.lists[k.list] {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p := &x.lists[k.list][i]
		sure := p.candidates(v, &k, &found)
		kept = kept[:0]
		found.Each(func(n uint16) bool {
			slot := uint32(i)*gramindex.BlockLen + uint32(n)
			if sure && (p.direct == nil || !p.direct.Has(n)) {
				kept = append(kept, slot)
			} else if r := rows.get(slot); r != nil && k.in(r) {
				kept = append(kept, slot)
			}
			return true
		})
		slots.AddMany(kept)
	}
	return slots, nil
}

// look asks every row of the list, in the order of slots.
func (v *View) look(ctx context.Context, k searchKey) (*roaring.Bitmap, error) {
	slots := roaring.New()
	for n, page := range v.lists[k.list].rows.pages {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for i, r := range page.values {
			if r != nil && k.in(r) {
				slots.Add(uint32(n*pageLen + i))
			}
		}
	}
	return slots, nil
}

// pageOf is the page that q asks for of the rows in slots. Many rows are found by walking the order
// until the page is full; few are taken out and sorted.
func (l *listView) pageOf(slots *roaring.Bitmap, q *ListQuery) Page {
	total := l.count(slots, q)
	n := min(q.Limit, total-q.Skip)
	if n <= 0 {
		return Page{Total: total}
	}
	// Sorting costs about ten times as much a row as walking past one.
	if steps := (q.Skip + n) * l.size(q) / total; steps < 10*total {
		return Page{Rows: l.walkThrough(slots, q, n), Total: total}
	}
	rows := make([]*Row, 0, total)
	slots.Iterate(func(slot uint32) bool {
		if r := l.rows.get(slot); r != nil && r.matches(q.Status, q.Proofs) {
			rows = append(rows, r)
		}
		return true
	})
	l.sort(rows, q.Sort)
	return Page{Rows: slices.Clip(rows[q.Skip : q.Skip+n]), Total: total}
}

// count is how many of slots hold a row that q's filters let through.
func (l *listView) count(slots *roaring.Bitmap, q *ListQuery) (total int) {
	slots.Iterate(func(slot uint32) bool {
		if l.filters.get(slot).match(q.Status, q.Proofs) {
			total++
		}
		return true
	})
	return total
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
