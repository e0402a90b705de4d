package readmodel

// totalsPageSize is how many totals are copied when one of them changes: 4 KiB.
const totalsPageSize = 512

type totalsPage struct {
	generation uint64 // of the totals when the page was made
	values     [totalsPageSize]int64
}

// totals are view totals by slot, copied on write page by page, so that those shared with a view
// stay as they were. The zero value is empty. One owner writes; shared totals are only read.
type totals struct {
	pages      []*totalsPage
	generation uint64 // pages of an older one belong to a view too
	shared     bool   // so does the slice of pages
}

func (t *totals) get(slot uint32) int64 {
	if p := int(slot / totalsPageSize); p < len(t.pages) {
		return t.pages[p].values[slot%totalsPageSize]
	}
	return 0
}

func (t *totals) set(slot uint32, v int64) {
	if t.get(slot) == v {
		return
	}
	if t.shared {
		t.pages, t.shared = append([]*totalsPage(nil), t.pages...), false
	}
	p := int(slot / totalsPageSize)
	for len(t.pages) <= p {
		t.pages = append(t.pages, &totalsPage{generation: t.generation})
	}
	if t.pages[p].generation != t.generation {
		page := *t.pages[p]
		page.generation = t.generation
		t.pages[p] = &page
	}
	t.pages[p].values[slot%totalsPageSize] = v
}

// share returns the totals as they are now; t goes on in copies.
func (t *totals) share() totals {
	t.generation++
	t.shared = true
	return totals{pages: t.pages}
}
