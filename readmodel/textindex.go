package readmodel

import (
	"context"
	"math/bits"
	"slices"
	"strings"

	"example.org/registry/readmodel/textblock"
)

// The text index of a list is a part of its view: a block for every 16,384 slots. A change marks its
// slot in the block, and a search reads the marked rows themselves. So a search never misses a change,
// and needs no block. A goroutine of the model rebuilds blocks with many marked slots
// (indexer.go).

// textQuery asks for the rows that have a text which contains a needle.
type textQuery struct {
	part   textPart
	needle string // not empty
}

// textPart is the part of a row's text that a query is for.
type textPart uint8

const (
	allText  textPart = iota // folded name, chat id and reason
	nameText                 // folded name and chat id
	keyText                  // a look-alike key, with a line feed around it
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

// findText returns the slots of all rows whose text contains the needle, and no other slots. The only
// error is ctx's. Results are not cached: a search takes milliseconds, and response bodies are cached.
func (l *list) findText(ctx context.Context, needle string) (bitset, error) {
	found := make(bitset, len(l.rows.chunks)*chunkLen/64)
	query := []textQuery{{allText, needle}}
	err := l.eachMatch(ctx, query, func(slot uint32) { found[slot/64] |= 1 << (slot % 64) })
	return found, err
}

// eachMatch calls f with the slots of exactly the rows that match a query. The only error is ctx's.
func (l *list) eachMatch(ctx context.Context, queries []textQuery, f func(slot uint32)) error {
	for i := range l.texts.blocks {
		if ctx.Err() != nil {
			return ctx.Err()
		}

		first := i * l.texts.size
		found := l.texts.blocks[i].find(queries, func(slot int) *Row { return l.rows.get(uint32(first + slot)) })
		found.Each(func(slot int) { f(uint32(first + slot)) })
	}
	return nil
}

// bitset is a set of slots of a list, a bit for each.
type bitset []uint64

func (b bitset) has(slot uint32) bool {
	return int(slot/64) < len(b) && b[slot/64]>>(slot%64)&1 != 0
}

// each calls f with the slots in ascending order.
func (b bitset) each(f func(slot uint32)) {
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			f(uint32(i*64 + bits.TrailingZeros64(word)))
		}
	}
}

// textBlocks are the blocks of a list. A view has a copy of its own.
type textBlocks struct {
	blocks []textBlock
	size   int // slots of a block
}

// textBlock is the index of some consecutive slots.
type textBlock struct {
	index *textblock.Block // nil if there is none yet
	// marked are the slots that have changed since index was begun; each slot with a row is marked if
	// there is no index.
	marked marks
}

// marks is a set of slots of a block. Views share the rows.
type marks struct {
	rows   *textblock.Rows // nil if there are none
	count  int
	shared bool // with a view
}

func (m *marks) add(slot int) {
	if m.rows == nil {
		m.rows = &textblock.Rows{}
	} else if m.rows.Has(slot) {
		return
	} else if m.shared {
		own := *m.rows
		m.rows = &own
	}

	m.shared = false
	m.rows.Add(slot)
	m.count++
}

func newTextBlocks() textBlocks { return textBlocks{size: textblock.Len} }

// markSlot marks a slot whose row has changed: searches read the row and do not ask the index.
func (t *textBlocks) markSlot(slot uint32) {
	block := int(slot) / t.size
	for block >= len(t.blocks) {
		t.blocks = append(t.blocks, textBlock{})
	}

	t.blocks[block].marked.add(int(slot) % t.size)
}

// copyForView returns a copy for a view.
func (t *textBlocks) copyForView() textBlocks {
	for i := range t.blocks {
		t.blocks[i].marked.shared = true
	}
	return textBlocks{slices.Clone(t.blocks), t.size}
}

// replaceBlock replaces a block by an index of the rows that l had before. The slots with other rows now stay
// marked.
func (l *list) replaceBlock(block int, index *textblock.Block, before *list) {
	var changed marks
	for i := range l.texts.size {
		slot := uint32(block*l.texts.size + i)
		if l.rows.get(slot) != before.rows.get(slot) {
			changed.add(i)
		}
	}
	l.texts.blocks[block] = textBlock{index, changed}
}

// find returns the slots of the rows that match a query.
func (b *textBlock) find(queries []textQuery, rowAt func(slot int) *Row) *textblock.Rows {
	isMatch := func(slot int) bool {
		r := rowAt(slot)
		return r != nil && slices.ContainsFunc(queries, func(q textQuery) bool { return q.matchesRow(r) })
	}

	// Ask the index.
	found := &textblock.Rows{}
	if b.index != nil {
		for _, q := range queries {
			switch q.part {
			case keyText:
				b.index.Keys(q.needle, found)
			case nameText:
				b.index.Names(q.needle, found)
			default:
				b.index.All(q.needle, isMatch, found)
			}
		}
	}

	// The index may be wrong about marked slots, which have changed since: read the rows in these slots.
	if b.marked.rows != nil {
		found.AndNot(b.marked.rows)
		b.marked.rows.Each(func(slot int) {
			if isMatch(slot) {
				found.Add(slot)
			}
		})
	}
	return found
}

// blockTexts returns the texts of a block's slots.
func (l *list) blockTexts(block int) []textblock.Text {
	texts := make([]textblock.Text, l.texts.size)
	for i := range texts {
		r := l.rows.get(uint32(block*l.texts.size + i))
		if r == nil {
			continue
		}

		reason := r.text[len(r.names)+1:] // r.text is r.names, a newline and the reason
		texts[i] = textblock.Text{Name: r.folded, ChatID: r.foldedChat(), Reason: reason, Keys: r.keys.Shape}
		if r.keys.Folded != r.keys.Shape {
			texts[i].Keys += "\n" + r.keys.Folded
		}
	}
	return texts
}
