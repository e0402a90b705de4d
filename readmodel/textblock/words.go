package textblock

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bits-and-blooms/bitset"
)

// words finds rows by words.
type words struct {
	column          // the different words
	rows   []uint16 // the rows of the first word, then of the next, and so on
	ends   []uint32 // for each word the end of its rows in rows
}

// findWords adds the rows of each word that contains piece. A line feed at an end of piece stands for an end
// of the word.
func (w *words) findWords(piece string, found *bitset.BitSet) {
	w.find([]byte(piece), func(n int) {
		start := uint32(0)
		if n > 0 {
			start = w.ends[n-1]
		}
		for _, row := range w.rows[start:w.ends[n]] {
			found.Set(uint(row))
		}
	})
}

// narrow removes the rows that have no word which contains piece.
func (w *words) narrow(piece string, rows *bitset.BitSet) {
	found := bitset.New(Len)
	w.findWords(piece, found)
	rows.InPlaceIntersection(found)
}

// poster fills words. The caller posts the words row by row, in ascending order.
type poster struct {
	into    *words
	numbers map[string]int // of each word
	rows    [][]uint16     // by the number of the word
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

	rows := p.rows[n]
	if len(rows) == 0 || rows[len(rows)-1] != uint16(row) { // the row's first occurrence of the word
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

// findReasons returns the rows whose reason may contain the needle. isSure means that all these reasons do.
func (b *Block) findReasons(needle string) (maybe *bitset.BitSet, isSure bool) {
	maybe = bitset.New(Len)
	pieces := strings.Split(needle, " ")
	if len(pieces) == 1 {
		b.words.findWords(needle, maybe)
		return maybe, true
	}

	// Begin with all rows, and keep those whose reason has the characters around each space of the needle.
	maybe.SetAll()
	for boundary := range boundariesIn(needle) {
		b.boundaries.narrow(boundary, maybe)
	}

	// The first piece ends a word of the reason, the last one begins a word, and the others are whole words.
	// Skip a piece that is no longer than the part of a boundary beside the space: boundaries had it already.
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

// boundariesIn yields, for each space of a text, the last characters of the word before, the space, and the
// first characters of the next word.
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
