package textblock

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// words finds rows by words.
type words struct {
	column                 // the different words
	lists    []uint16      // the rows of the rarer words, word by word
	ends     []uint32      // by word: where its rows end in lists
	frequent map[int]*Rows // by word: the rows of the others
}

// having adds the rows that have a word which contains piece.
func (w *words) having(piece string, found *Rows) {
	w.find([]byte(piece), func(n int) {
		if rows := w.frequent[n]; rows != nil {
			found.Or(rows)
			return
		}
		from := uint32(0)
		if n > 0 {
			from = w.ends[n-1]
		}
		for _, row := range w.lists[from:w.ends[n]] {
			found.Add(int(row))
		}
	})
}

// poster fills words with the words of row after row.
type poster struct {
	into    *words
	numbers map[string]int
	rows    [][]uint16 // by word
}

func newPoster(into *words) *poster {
	into.frequent = map[int]*Rows{}
	return &poster{into: into, numbers: map[string]int{}}
}

func (p *poster) post(word string, row int) {
	n, isKnown := p.numbers[word]
	if !isKnown {
		n = len(p.rows)
		p.numbers[word], p.rows = n, append(p.rows, nil)
		p.into.add(word)
	}
	if rows := p.rows[n]; len(rows) == 0 || rows[len(rows)-1] != uint16(row) {
		p.rows[n] = append(rows, uint16(row))
	}
}

// close is called after the last post.
func (p *poster) close() {
	w := p.into
	for n, rows := range p.rows {
		if len(rows) > Len/16 { // a set is shorter than its list
			w.frequent[n] = &Rows{}
			for _, row := range rows {
				w.frequent[n].Add(int(row))
			}
		} else {
			w.lists = append(w.lists, rows...)
		}
		w.ends = append(w.ends, uint32(len(w.lists)))
	}
	w.lists, w.ends = slices.Clip(w.lists), slices.Clip(w.ends)
	w.column.close()
}

// postReason posts the words of a reason, and the boundaries between them.
func postReason(reason string, row int, words, boundaries *poster) {
	last := ""
	for i, word := range strings.Split(reason, " ") {
		words.post(word, row)
		if i > 0 {
			boundaries.post(boundary(last, word), row)
		}
		last = word
	}
}

// reach is the number of characters that a boundary has on either side of the space.
const reach = 2

// boundary returns the end of one word, a space, and the start of the next one.
func boundary(left, right string) string {
	from := len(left)
	for n := 0; n < reach && from > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(left[:from])
		from -= size
	}
	to := 0
	for n := 0; n < reach && to < len(right); n++ {
		_, size := utf8.DecodeRuneInString(right[to:])
		to += size
	}
	return left[from:] + " " + right[:to]
}

// reasons returns the rows of the part whose reason may contain the needle; isSure means that they all do.
func (p *part) reasons(needle string) (maybe *Rows, isSure bool) {
	maybe = &Rows{}
	pieces := strings.Split(needle, " ")
	if len(pieces) == 1 {
		p.words.having(needle, maybe)
		return maybe, true
	}

	// What lies around each space of the needle is in the reason.
	p.boundaries.having(boundary(pieces[0], pieces[1]), maybe)
	also := func(in *words, piece string) {
		var rows Rows
		in.having(piece, &rows)
		maybe.And(&rows)
	}
	for i := 1; i+1 < len(pieces); i++ {
		also(&p.boundaries, boundary(pieces[i], pieces[i+1]))
	}

	// So is each of its words: the first one ends a word there, and the last one starts one.
	for i, piece := range pieces {
		if i > 0 {
			piece = "\n" + piece
		}
		if i < len(pieces)-1 {
			piece += "\n"
		}
		if len(piece) > reach+1 {
			also(&p.words, piece)
		}
	}
	return maybe, false
}
