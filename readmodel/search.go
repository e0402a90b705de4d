package readmodel

import (
	"context"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"example.org/registry/readmodel/gramindex"
)

// search answers a page of the rows whose text contains what is searched for.
func (v *View) search(ctx context.Context, q *ListQuery) (Page, error) {
	m, err := v.matching(ctx, searchKey{listIndex(q.List), gramindex.All, Fold(q.Search)})
	if err != nil {
		return Page{}, err
	}
	return v.list(q.List).pageOf(&m, q), nil
}

// matching is exactly the listed rows of a list whose text contains a needle. The caller only reads it. Its
// error is ctx's.
//
// An answer is made of what is remembered or what the index finds, plus what has changed since,
// each change looked at in this view's own rows; or of a look at every row. So neither being behind
// nor being away changes an answer (promise 6).
func (v *View) matching(ctx context.Context, k searchKey) (matches, error) {
	if r, ok := v.accelerator.remembered.GetIfPresent(k); ok && r.sequence <= v.sequence {
		if changes, ok := v.changes.since(r.sequence); ok && v.worth(r, len(changes)) {
			m := r.matches
			if v.after(&k, &m, changes); len(changes) > 0 {
				v.accelerator.remember(k, v.sequence, m)
			}
			v.accelerator.hits.Add(1)
			return m, nil
		}
	}
	v.accelerator.misses.Add(1)
	m, err := v.find(ctx, k)
	if err == nil {
		v.accelerator.remember(k, v.sequence, m)
	}
	return m, err
}

// worth says whether to look at so many changes since r, rather than ask the index anew and look at what
// that finds.
func (v *View) worth(r *remembered, changes int) bool {
	const few = 512
	x := v.accelerator.index.Load()
	return changes <= few || x == nil || x.sequence <= r.sequence || uint64(changes) < r.matches.slots.GetCardinality()
}

// after brings m, true before changes, to this view: in a copy, where its slots change.
func (v *View) after(k *searchKey, m *matches, changes []changed) {
	rows, own := &v.lists[k.list].rows, false
	for _, c := range changes {
		if c.list() != k.list {
			continue
		}
		r := rows.get(c.slot())
		was, is := m.slots.Contains(c.slot()), r != nil && k.in(r)
		m.tally.move(&c, was, is)
		if is == was {
			continue
		}
		if !own {
			m.slots, own = m.slots.Clone(), true
		}
		if is {
			m.slots.Add(c.slot())
		} else {
			m.slots.Remove(c.slot())
		}
	}
}

// in says whether the row's text contains the needle.
func (k *searchKey) in(r *Row) bool {
	if k.text == gramindex.Names {
		return strings.Contains(r.nameAndChat(), k.needle)
	}
	return strings.Contains(r.text(), k.needle)
}

// find asks the index, or every row where there is no index that this view can use.
func (v *View) find(ctx context.Context, k searchKey) (m matches, err error) {
	x := v.accelerator.index.Load()
	var changes []changed
	indexed := x != nil && x.begun <= v.sequence
	if indexed {
		changes, indexed = v.changes.since(x.sequence)
	}
	if indexed {
		m.slots, err = v.ask(ctx, x, k)
	} else {
		m.slots, err = v.look(ctx, k)
	}
	if err == nil {
		v.after(&k, &m, changes)
		m.tally = v.lists[k.list].tally(m.slots)
	}
	return m, err
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
