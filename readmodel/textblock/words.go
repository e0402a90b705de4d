package textblock

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// words finds rows by words.
type words struct {
	column          // the different words
	rows   []uint16 // of the words, word by word
	ends   []uint32 // by word: the end of its rows
}

// findWords adds the rows that have a word which contains piece. A line feed at an end of piece stands for
// an end of the word.
func (w *words) findWords(piece string, found *Rows) {
	w.find([]byte(piece), func(n int) {
		start := uint32(0)
		if n > 0 {
			start = w.ends[n-1]
		}
		for _, row := range w.rows[start:w.ends[n]] {
			found.Add(int(row))
		}
	})
}

// narrow removes the rows that have no word which contains piece.
func (w *words) narrow(piece string, rows *Rows) {
	var found Rows
	w.findWords(piece, &found)
	rows.And(&found)
}

// poster fills words with the words of row after row.
type poster struct {
	into    *words
	numbers map[string]int
	rows    [][]uint16 // by word
}

func newPoster(into *words) *poster { return &poster{into: into, numbers: map[string]int{}} }

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
	w.rows = slices.Concat(p.rows...)
	end := uint32(0)
	for _, rows := range p.rows {
		end += uint32(len(rows))
		w.ends = append(w.ends, end)
	}

	w.ends = slices.Clip(w.ends) // the block lives for hours
	w.column.close()
}

// findReasons returns the rows with a reason that may contain the needle; isSure means that all of them do.
func (b *Block) findReasons(needle string) (maybe *Rows, isSure bool) {
	maybe = &Rows{}
	pieces := strings.Split(needle, " ")
	if len(pieces) == 1 {
		b.words.findWords(needle, maybe)
		return maybe, true
	}

	// Of all rows, those are left whose reason has the characters around each space of the needle.
	for i := range maybe {
		maybe[i] = ^uint64(0)
	}
	for boundary := range boundariesIn(needle) {
		b.boundaries.narrow(boundary, maybe)
	}

	// The first piece ends a word of the reason, the last one begins a word, and the others are whole words.
	// Boundaries have narrowed by short pieces already.
	for i, piece := range pieces {
		if i > 0 {
			piece = "\n" + piece
		}
		if i < len(pieces)-1 {
			piece += "\n"
		}
		if len(piece) > reach+1 {
			b.words.narrow(piece, maybe)
		}
	}
	return maybe, false
}

// reach is the number of characters that a boundary has on either side of the space.
const reach = 2

// boundariesIn yields the part of a text around each space: the end of a word, the space, and the start of the
// next word.
func boundariesIn(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for space := range len(text) {
			if text[space] != ' ' {
				continue
			}

			start := space
			for n := 0; n < reach && start > 0 && text[start-1] != ' '; n++ {
				_, size := utf8.DecodeLastRuneInString(text[:start])
				start -= size
			}

			end := space + 1
			for n := 0; n < reach && end < len(text) && text[end] != ' '; n++ {
				_, size := utf8.DecodeRuneInString(text[end:])
				end += size
			}

			if !yield(text[start:end]) {
				return
			}
		}
	}
}
