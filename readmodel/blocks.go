package readmodel

import (
	"slices"

	"example.org/registry/readmodel/textblock"
)

// The text index of a list is a part of its view: a block for every 16,384 slots. A change marks its
// slot in the block, and a search looks at the marked rows themselves. So a search never misses a
// change, and needs no block (promise 6).
//
// A goroutine of the model makes blocks anew where many slots are marked (indexer.go).

// textBlock is the index of some consecutive slots.
type textBlock struct {
	index *textblock.Block // nil if there is none yet
	// marked are the slots that have changed since index was begun; each slot with a row is marked if
	// there is no index.
	marked marks
	// later are those of marked that have changed since the block was last begun anew.
	later marks
}

// marks is a set of slots of a block. Views share the rows.
type marks struct {
	rows   *textblock.Rows // nil if there are none
	count  int
	shared bool // with a view
}

func (m *marks) add(slot int) {
	switch {
	case m.rows == nil:
		m.rows = &textblock.Rows{}
	case m.rows.Has(slot):
		return
	case m.shared:
		own := *m.rows
		m.rows = &own
	}
	m.shared = false
	m.rows.Add(slot)
	m.count++
}

func newTextBlocks() textBlocks { return textBlocks{size: textblock.Len} }

// textBlocks are the blocks of a list. A view has a copy of its own.
type textBlocks struct {
	blocks []textBlock
	size   int // slots of a block
}

// mark has searches look at the row of a slot themselves.
func (t *textBlocks) mark(slot uint32) {
	block, at := int(slot)/t.size, int(slot)%t.size
	for block >= len(t.blocks) {
		t.blocks = append(t.blocks, textBlock{})
	}
	t.blocks[block].marked.add(at)
	t.blocks[block].later.add(at)
}

// snapshot returns a copy for a view.
func (t *textBlocks) snapshot() textBlocks {
	for i := range t.blocks {
		b := &t.blocks[i]
		b.marked.shared, b.later.shared = true, true
	}
	return textBlocks{slices.Clone(t.blocks), t.size}
}

// begin starts a set of later changes for a block that is begun anew.
func (t *textBlocks) begin(block int) { t.blocks[block].later = marks{} }

// finish replaces a block by an index that was begun with begin. It returns the blocks.
func (t *textBlocks) finish(block int, index *textblock.Block) {
	later := t.blocks[block].later
	later.shared = true // as later and as marked
	t.blocks[block] = textBlock{index, later, later}
}

// find adds the slots whose text matches to bits. rows are the rows of the list.
func (t *textBlocks) find(block int, q *textQuery, rows *cowSlice[*Row], bits bitset) {
	b, first := &t.blocks[block], block*t.size
	matches := func(slot int) bool {
		r := rows.get(uint32(first + slot))
		return r != nil && q.matches(r)
	}

	var found textblock.Rows
	if b.index != nil {
		switch q.part {
		case keyText:
			b.index.Keys(q.needle, &found)
		case nameText:
			b.index.Names(q.needle, &found)
		default:
			b.index.All(q.needle, matches, &found)
		}
	}

	// What the block says of rows that have changed since does not count: they may be gone, or others.
	if b.marked.rows != nil {
		found.AndNot(b.marked.rows)
		b.marked.rows.Each(func(slot int) {
			if matches(slot) {
				found.Add(slot)
			}
		})
	}
	found.Each(func(slot int) { bits.add(uint32(first + slot)) })
}

// texts returns the texts of a block's slots.
func (t *textBlocks) texts(block int, rows *cowSlice[*Row]) []textblock.Text {
	all := make([]textblock.Text, t.size)
	for slot := range all {
		if r := rows.get(uint32(block*t.size + slot)); r != nil {
			all[slot] = textblock.Text{Name: r.folded, ChatID: r.foldedChat(), Reason: r.text[len(r.names)+1:], Keys: r.keys.Shape}
			if r.keys.Folded != r.keys.Shape {
				all[slot].Keys += "\n" + r.keys.Folded
			}
		}
	}
	return all
}
