package gramindex

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"slices"
)

// Builder collects the texts of one block. One goroutine owns it. The zero value is ready. It takes about
// twice the memory of the largest block that it made.
type Builder struct {
	table []int32 // open addressing: positions in lists, plus one
	lists []list
	slots slots
	bytes int // that the block will have
}

// list is the slots of one gram.
type list struct {
	gram  gram
	cells cells
	n     int // slots in it
}

// maxBlock bounds a block: what usual entries take, five times over. Texts that do not fit any more
// are left out.
const maxBlock = BlockLen * 2048

// Add takes the text of a slot, of which the first names bytes are the names. Slots come in ascending
// order. It is false when the block is full: then the slot has to be looked at by who searches.
func (b *Builder) Add(slot uint16, text string, names int) bool {
	// The most that a text can add is a new gram at each character and between each two.
	if b.bytes+2*(len(text)+names)*(entrySize+slotSize) > maxBlock {
		return false
	}
	eachGram(text[:names], func(g gram) { b.add(inNames|g, slot) })
	eachGram(text, func(g gram) { b.add(g, slot) })
	return true
}

func (b *Builder) add(g gram, slot uint16) {
	l := b.list(g)
	before := b.slots.size(l)
	b.slots.add(l, slot)
	b.bytes += b.slots.size(l) - before
}

// list finds the list of a gram, or makes one.
func (b *Builder) list(g gram) *list {
	if 2*len(b.lists) >= len(b.table) {
		b.grow()
	}
	at := b.place(g)
	if b.table[at] == 0 {
		b.lists = append(b.lists, list{gram: g})
		b.table[at] = int32(len(b.lists))
		b.bytes += entrySize
	}
	return &b.lists[b.table[at]-1]
}

// place is where in the table the gram is or belongs.
func (b *Builder) place(g gram) int {
	const golden = 0x9E3779B97F4A7C15
	mask := len(b.table) - 1
	for at := int(uint64(g) * golden >> 32); ; at++ {
		at &= mask
		if n := b.table[at]; n == 0 || b.lists[n-1].gram == g {
			return at
		}
	}
}

func (b *Builder) grow() {
	b.table = make([]int32, max(2*len(b.table), 1<<14))
	for i := range b.lists {
		b.table[b.place(b.lists[i].gram)] = int32(i + 1)
	}
}

// Reset makes the builder ready for another block.
func (b *Builder) Reset() {
	clear(b.table)
	b.lists, b.bytes = b.lists[:0], 0
	b.slots.reset()
}

// A block is written as its number of lists (8 bytes), their grams (8 each, ascending), where each
// list ends (4 each, counted from the end of these), and the lists. Little endian.
const (
	headSize  = 8
	gramSize  = 8
	endSize   = 4
	entrySize = gramSize + endSize
)

// writeTo writes the block. It changes the order of the lists, so Reset has to follow.
func (b *Builder) writeTo(w *bufio.Writer) error {
	slices.SortFunc(b.lists, func(x, y list) int { return cmp.Compare(x.gram, y.gram) })
	put := func(number []byte) { _, _ = w.Write(number) } // Flush says what went wrong
	put(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), uint64(len(b.lists))))
	for i := range b.lists {
		put(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), uint64(b.lists[i].gram)))
	}
	end := 0
	for i := range b.lists {
		end += b.slots.size(&b.lists[i])
		put(binary.LittleEndian.AppendUint32(w.AvailableBuffer(), uint32(end)))
	}
	for i := range b.lists {
		for _, cell := range b.slots.of(&b.lists[i]) {
			put(binary.LittleEndian.AppendUint16(w.AvailableBuffer(), cell))
		}
	}
	return w.Flush()
}
