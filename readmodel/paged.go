package readmodel

// pageLen is how many values are copied when one of them changes: 4 KiB.
const pageLen = 512

type page[T any] struct {
	generation uint64 // of the paged when the page was made
	values     [pageLen]T
}

// paged holds one value for each slot, copied on write page by page, so that what is shared with a
// view stays as it was. The zero value is empty. One owner writes; shared ones are only read.
type paged[T any] struct {
	pages      []*page[T]
	generation uint64 // pages of an older one belong to a view too
	shared     bool   // so does the slice of pages
}

// get is the value of a slot; the zero value where none was set.
func (p *paged[T]) get(slot uint32) (v T) {
	if n := int(slot / pageLen); n < len(p.pages) {
		return p.pages[n].values[slot%pageLen]
	}
	return v
}

func (p *paged[T]) set(slot uint32, v T) {
	if p.shared {
		p.pages, p.shared = append([]*page[T](nil), p.pages...), false
	}
	n := int(slot / pageLen)
	for len(p.pages) <= n {
		p.pages = append(p.pages, &page[T]{generation: p.generation})
	}
	if p.pages[n].generation != p.generation {
		own := *p.pages[n]
		own.generation = p.generation
		p.pages[n] = &own
	}
	p.pages[n].values[slot%pageLen] = v
}

// share returns the values as they are now; p goes on in copies.
func (p *paged[T]) share() paged[T] {
	p.generation++
	p.shared = true
	return paged[T]{pages: p.pages}
}
