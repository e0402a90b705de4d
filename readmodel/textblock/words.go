package textblock

import (
	"iter"
	"slices"
	"strings"

	"github.com/bits-and-blooms/bitset"
)

// words finds rows by words.
type words struct {
	column          // the different words
	rows   []uint16 // the rows of the first word, then of the next, and so on
	ends   []uint32 // 0, and then for each word the end of its rows in rows
}

// findWords adds the rows of each word that contains piece. A line feed at either end of piece stands for the
// same end of the word.
func (w *words) findWords(piece string, found *bitset.BitSet) {
	w.find(piece, func(n int) {
		for _, row := range w.rows[w.ends[n]:w.ends[n+1]] {
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

// posts has the rows of each word, in ascending order.
type posts map[string]*[]uint16

func (p posts) postWord(word string, row int) {
	rows := p[word]
	if rows == nil {
		rows = &[]uint16{}
		p[word] = rows
	}

	// A row may have the word twice. Rows are posted in ascending order, so the row is then the last.
	if len(*rows) == 0 || (*rows)[len(*rows)-1] != uint16(row) {
		*rows = append(*rows, uint16(row))
	}
}

// newWords makes the words of all posts.
func newWords(p posts) words {
	w := words{ends: make([]uint32, 1, len(p)+1)}
	for word, rows := range p {
		w.addText(word)
		w.rows = append(w.rows, *rows...)
		w.ends = append(w.ends, uint32(len(w.rows)))
	}

	w.rows = slices.Clone(w.rows) // without spare room, since the block lives for hours
	w.close()
	return w
}

// rowsWith returns the rows whose reason may contain needle, which has several words.
func (b *Block) rowsWith(needle string) *bitset.BitSet {
	// Begin with all rows, and keep those whose reason has the bytes around each space of the needle.
	rows := bitset.New(Len).SetAll()
	for boundary := range boundariesIn(needle) {
		b.boundaries.narrow(boundary, rows)
	}

	// Then keep the rows with the pieces of the needle. In b.words, a line feed marks an end of a word: the first piece
	// ends a word, the last piece begins one, and the pieces between are whole words.
	pieces := strings.Split(needle, " ")
	for i, piece := range pieces {
		if len(piece) <= reach { // the boundary has all of it
			continue
		}
		if i > 0 {
			piece = "\n" + piece
		}
		if i < len(pieces)-1 {
			piece += "\n"
		}
		b.words.narrow(piece, rows)
	}
	return rows
}

// reach is the number of bytes that a boundary has on either side of the space.
const reach = 2

// boundariesIn yields a string for each space of a text: the space with up to reach bytes before and after it, which may be
// parts of characters. For "boss ma 5 kont" these are "ss ma", "ma 5 " and " 5 ko".
func boundariesIn(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := range len(text) {
			isSpace := text[at] == ' '
			if isSpace && !yield(text[max(0, at-reach):min(len(text), at+1+reach)]) {
				return
			}
		}
	}
}
