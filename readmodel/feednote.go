package readmodel

import "example.org/registry/readmodel/gramindex"

// note marks what has changed since the last view as not indexed.
func (f *feed) note(v *View) {
	changes, ok := v.changes.since(f.next.sequence)
	f.quiet = ok && len(changes) == 0
	if !ok || !f.begun {
		f.compare(v)
	}
	for _, c := range changes {
		f.mark(c.list(), c.slot())
	}
	f.begun, f.view, f.next.sequence = true, v, v.sequence
}

// compare is note where changes have been forgotten: by a look at every row. It misses those that are gone,
// which older views still show.
func (f *feed) compare(v *View) {
	f.next.begun = v.sequence
	for list, l := range v.lists {
		for n, page := range l.rows.pages {
			for i, r := range page.values {
				if r != nil && (!f.begun || r.sequence > f.next.sequence) {
					f.mark(list, uint32(n*pageLen+i))
				}
			}
		}
	}
}

func (f *feed) mark(list int, slot uint32) {
	i := int(slot / gramindex.BlockLen)
	for len(f.next.lists[list]) <= i {
		f.next.lists[list] = append(f.next.lists[list], part{})
		f.care[list] = append(f.care[list], care{})
	}
	p := &f.next.lists[list][i]
	if !f.care[list][i].own {
		var direct gramindex.Set
		if p.direct != nil {
			direct = *p.direct
		}
		p.direct, f.care[list][i].own = &direct, true
	}
	if p.direct.Add(uint16(slot % gramindex.BlockLen)) {
		p.waits++
	}
}
