package readmodel

import (
	"context"
	"slices"
	"strings"

	"github.com/bits-and-blooms/bitset"

	"example.org/registry/readmodel/textblock"
)

// Every view has a text index of each list: a block for every 16,384 slots. A block has an index of the rows
// that were in its slots when the index was made. Slots that have got a row since then are fresh. A search
// reads the texts of rows in fresh slots, and takes a row from the index only if the list still has the row.
// So a search sees every change, even before a block has an index. A goroutine of the model makes a new index
// for a block with many fresh slots (indexer.go).

// textQuery asks for the rows with a needle in a part of their text.
type textQuery struct {
	part   textPart
	needle string // not empty
}

// textPart is the part of a row's text that a query is for.
type textPart uint8

const (
	allText  textPart = iota // folded name, chat id and reason
	nameText                 // folded name and chat id
	keyText                  // either look-alike key, with a line feed before and after it
)

// matchesRow reports whether the row's text contains the needle.
func (q *textQuery) matchesRow(r *Row) bool {
	switch q.part {
	case keyText:
		return strings.Contains("\n"+r.keys.Shape+"\n", q.needle) || strings.Contains("\n"+r.keys.Folded+"\n", q.needle)
	case nameText:
		return strings.Contains(r.names, q.needle)
	default:
		return strings.Contains(r.text, q.needle)
	}
}

// eachMatch calls f with the slot of each row that matches any of the queries. The only error is ctx's.
// There is no cache of slots: a search takes milliseconds, and response bodies are cached.
func (l *list) eachMatch(ctx context.Context, queries []textQuery, f func(slot uint32)) error {
	for n := range l.texts.blocks {
		if ctx.Err() != nil {
			return ctx.Err()
		}

		b := &l.texts.blocks[n]
		for _, slot := range b.fresh {
			if matchesAny(queries, l.rows.get(slot)) {
				f(slot)
			}
		}

		// Leave out indexed rows that the list no longer has.
		firstSlot := n * l.texts.size
		for i := range b.findIndexed(queries).EachSet() {
			slot := uint32(firstSlot + int(i))
			if l.rows.get(slot) == b.rows[i] {
				f(slot)
			}
		}
	}
	return nil
}

// matchesAny reports whether r is not nil and matches any of the queries.
func matchesAny(queries []textQuery, r *Row) bool {
	return r != nil && slices.ContainsFunc(queries, func(q textQuery) bool { return q.matchesRow(r) })
}

// textBlocks are the blocks of a list. A view has a copy of its own.
type textBlocks struct {
	blocks []textBlock
	size   int // slots of a block
}

// textBlock is for some consecutive slots. Views share its slices.
type textBlock struct {
	index *textblock.Block // nil if there is none yet
	rows  []*Row           // indexed rows, from the first slot of the block on; nil for a slot without a row
	fresh []uint32         // slots that have got a row since the index was made; only the owner appends

	hasGone bool // rows has a row that is gone from the list, so its text has to be forgotten
}

// addFresh adds a slot that has got a row.
func (t *textBlocks) addFresh(slot uint32) {
	n := int(slot) / t.size
	for n >= len(t.blocks) {
		t.blocks = append(t.blocks, textBlock{})
	}
	t.blocks[n].fresh = append(t.blocks[n].fresh, slot)
}

// copyForView returns a copy for a view.
func (t *textBlocks) copyForView() textBlocks { return textBlocks{slices.Clone(t.blocks), t.size} }

// newTextBlock makes block n of the list's rows.
func (l *list) newTextBlock(n int) textBlock {
	rows := make([]*Row, l.texts.size)
	texts := make([]textblock.Text, l.texts.size)
	for i := range rows {
		r := l.rows.get(uint32(n*l.texts.size + i))
		if r == nil {
			continue
		}

		rows[i] = r
		reason := r.text[len(r.names)+1:] // r.text is r.names, a newline and the reason
		keys := strings.Join(r.keys.Distinct(), "\n")
		texts[i] = textblock.Text{Name: r.folded, ChatID: r.foldedChat(), Reason: reason, Keys: keys}
	}
	return textBlock{index: textblock.New(texts), rows: rows}
}

// replaceBlock replaces block n by the block that newTextBlock has made of source, an earlier copy of the list. A
// fresh slot stays fresh if its row has changed since that copy.
func (l *list) replaceBlock(n int, made textBlock, source *list) {
	for _, slot := range l.texts.blocks[n].fresh {
		if l.rows.get(slot) != source.rows.get(slot) {
			made.fresh = append(made.fresh, slot)
		}
	}
	made.hasGone = l.texts.blocks[n].hasGone // set while the block was made
	l.texts.blocks[n] = made
}

// findIndexed returns the positions in b.rows of the rows that match any of the queries.
func (b *textBlock) findIndexed(queries []textQuery) *bitset.BitSet {
	found := bitset.New(textblock.Len)
	if b.index == nil {
		return found
	}

	for _, q := range queries {
		switch q.part {
		case keyText:
			b.index.Keys(q.needle, found)
		case nameText:
			b.index.Names(q.needle, found)
		default:
			b.index.All(q.needle, func(i int) bool { return matchesAny(queries, b.rows[i]) }, found)
		}
	}
	return found
}
