package readmodel

import "time"

// need is whether a part's block is to be made anew.
type need int

const (
	none  need = iota
	later      // it lacks some slots, but is about to lack more
	now
)

// seldom is how often a block is made anew at most while it lacks less than half of what it has.
const seldom = 5 * time.Second

// need grows with what the part lacks. While much is changing a block grows by half each time, so that
// filling it costs three times what making it once does.
func (f *feed) need(list, i int) need {
	waits, c := f.next.lists[list][i].waits, f.care[list][i]
	switch {
	case waits <= f.indexer.slack():
		return none
	case f.quiet || waits > c.rows/2 || time.Since(c.built) > seldom:
		return now
	default:
		return later
	}
}

// neediest is the part that needs a new block most.
func (f *feed) neediest() (list, i int, most need) {
	waits := 0
	for l := range f.next.lists {
		for n := range f.next.lists[l] {
			w, need := f.next.lists[l][n].waits, f.need(l, n)
			if need > most || need == most && need != none && w > waits {
				list, i, most, waits = l, n, need, w
			}
		}
	}
	return list, i, most
}
