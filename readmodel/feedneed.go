package readmodel

import "time"

// need is whether a part's block is to be made anew.
type need int

const (
	none  need = iota
	later      // it lacks some slots, but is about to lack more
	now
)

const (
	// seldom is how often a block is made anew at most while it lacks less than half of what it has.
	seldom = 5 * time.Second
	// often is the same of the small block beside it.
	often = time.Second / 5
	// maxStale bounds that block, in slots. With 1 000 changes a second all over seven parts, the small blocks
	// and then the large ones take a fifth of a processor each.
	maxStale = 1024
)

// fewStale says whether a small block will do for what the part's block does not know.
func (f *feed) fewStale(list, i int) bool {
	lacks, rows := f.lacks(list, i), f.care[list][i].rows
	return lacks <= maxStale && lacks <= rows/2
}

func (f *feed) lacks(list, i int) int {
	return f.next.lists[list][i].waits + f.care[list][i].stale
}

// need grows with what the part lacks. While much is changing a block grows by half each time, so that
// filling it costs three times what making it once does.
func (f *feed) need(list, i int) need {
	c, few := f.care[list][i], f.fewStale(list, i)
	switch {
	case f.next.lists[list][i].waits <= f.indexer.slack():
		return none
	case f.quiet,
		few && time.Since(c.last) > often,
		!few && (f.lacks(list, i) > c.rows/2 || time.Since(c.block) > seldom):
		return now
	default:
		return later
	}
}

// neediest is the part that needs a new block most; of those for which a small one will do, if small is set.
func (f *feed) neediest(small bool) (list, i int, most need) {
	waits := 0
	for l := range f.next.lists {
		for n := range f.next.lists[l] {
			if small && !f.fewStale(l, n) {
				continue
			}
			w, need := f.next.lists[l][n].waits, f.need(l, n)
			if need > most || need == most && need != none && w > waits {
				list, i, most, waits = l, n, need, w
			}
		}
	}
	return list, i, most
}
