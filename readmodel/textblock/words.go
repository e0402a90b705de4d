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
	ends     []uint32      // by word: the end of its rows in lists
	frequent map[int]*Rows // by word: the rows of the others
}

// findRows adds the rows that have a word which contains piece.
func (w *words) findRows(piece string, found *Rows) {
	w.find([]byte(piece), func(n int) {
		if rows := w.frequent[n]; rows != nil {
			found.Or(rows)
			return
		}

		start := uint32(0)
		if n > 0 {
			start = w.ends[n-1]
		}
		for _, row := range w.lists[start:w.ends[n]] {
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

func (p *poster) postWord(word string, row int) {
	n, isKnown := p.numbers[word]
	if !isKnown {
		n = len(p.rows)
		p.numbers[word] = n
		p.rows = append(p.rows, nil)
		p.into.addText(word)
	}

	if rows := p.rows[n]; len(rows) == 0 || rows[len(rows)-1] != uint16(row) {
		p.rows[n] = append(rows, uint16(row))
	}
}

// close is called after the last postWord.
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

	// The block lives for hours: keep no spare capacity.
	w.lists = slices.Clip(w.lists)
	w.ends = slices.Clip(w.ends)
	w.column.close()
}

// postReason posts the words of a reason, and the boundaries between them.
func postReason(reason string, row int, words, boundaries *poster) {
	last := ""
	for i, word := range strings.Split(reason, " ") {
		words.postWord(word, row)
		if i > 0 {
			boundaries.postWord(boundaryOf(last, word), row)
		}
		last = word
	}
}

// reach is the number of characters that a boundary has on either side of the space.
const reach = 2

// boundaryOf returns the end of one word, a space, and the start of the next one.
func boundaryOf(left, right string) string {
	start := len(left)
	for n := 0; n < reach && start > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(left[:start])
		start -= size
	}

	end := 0
	for n := 0; n < reach && end < len(right); n++ {
		_, size := utf8.DecodeRuneInString(right[end:])
		end += size
	}
	return left[start:] + " " + right[:end]
}

// findReasons returns the rows of the part that have a reason which may contain the needle; isSure means
// that all of them do.
func (p *part) findReasons(needle string) (maybe *Rows, isSure bool) {
	maybe = &Rows{}
	pieces := strings.Split(needle, " ")
	if len(pieces) == 1 {
		p.words.findRows(needle, maybe)
		return maybe, true
	}

	// The reason has the characters around each space of the needle.
	p.boundaries.findRows(boundaryOf(pieces[0], pieces[1]), maybe)

	narrow := func(in *words, piece string) {
		var rows Rows
		in.findRows(piece, &rows)
		maybe.And(&rows)
	}
	for i := 1; i+1 < len(pieces); i++ {
		narrow(&p.boundaries, boundaryOf(pieces[i], pieces[i+1]))
	}

	// The reason has each piece of the needle: the first piece ends a word of the reason, the last piece
	// begins one, and the others are whole words. Boundaries have narrowed by short pieces already.
	for i, piece := range pieces {
		if i > 0 {
			piece = "\n" + piece
		}
		if i < len(pieces)-1 {
			piece += "\n"
		}
		if len(piece) > reach+1 {
			narrow(&p.words, piece)
		}
	}
	return maybe, false
}
