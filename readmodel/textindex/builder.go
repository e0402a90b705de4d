package textindex

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
)

// Builder collects the texts of one block. One goroutine owns it, and its Vocabulary while it adds. It
// takes about twice the memory of the largest block that it built. It is ready once Vocabulary is set.
type Builder struct {
	// Vocabulary numbers the words. Required. Builders that are used in turns may share it.
	Vocabulary *Vocabulary
	// MaxVocabulary bounds the Vocabulary, in bytes: texts that would add to a longer one are left out.
	// Zero: 4 MiB.
	MaxVocabulary int

	table  []int32 // open addressing: positions in lists, plus one
	lists  []list
	memory listMemory
	bytes  int // of the block so far, at most
	limit  int // of bytes; zero: maxBlock

	// Scratch, kept for its memory.
	words   []word // of the text that is added, with its boundaries
	added   int    // what they add to the vocabulary, in bytes
	text    []byte
	links   []link
	written []byte
}

// list is the slots of one gram, word or boundary.
type list struct {
	gram gram
	run  runStart
	n    int // slots in it
}

// word is a word of a text, or a boundary.
type word struct {
	in     *dictionary
	text   []byte
	number uint32 // unknown: it is new
}

const (
	// maxBlock bounds a block to five times what typical entries take. Texts that no longer fit are left
	// out.
	maxBlock = BlockLen * 2048
	// maxNew bounds what one text adds to the vocabulary, in bytes: some two hundred new words. A text of more
	// is left out, so it costs each search a look, and no memory.
	maxNew = 8 << 10
	// perWord is what a new word takes besides its bytes.
	perWord = 16
	// maxWord is the longest word that is indexed, in bytes. No needle is longer.
	maxWord = 512
)

// Add adds the texts of a slot: the names, in fields that a newline separates, and words that single
// spaces separate. Slots come in ascending order. It returns false if the texts do not fit: then searches
// have to look at the slot themselves.
func (b *Builder) Add(slot uint16, names, words string) bool {
	// The most that a text can add is a new gram at each character and between each two.
	if b.bytes+2*(len(names)+len(words))*(entrySize+slotSize) > cmp.Or(b.limit, maxBlock) || !b.read(words) {
		return false
	}
	eachGram(names, func(g gram) { b.add(inNames|g, slot, 1) })
	for _, w := range b.words {
		if w.number == unknown {
			w.number = w.in.add(w.text)
		}
		if w.in == &b.Vocabulary.boundaries {
			b.add(boundaryKind|gram(w.number), slot, 1)
			continue
		}
		// Lists that are derived from the word's take as much for each of its characters and pairs, at most.
		b.add(wordKind|gram(w.number), slot, 1+2*len(w.text))
	}
	return true
}

// read takes the words of a text and the boundaries between them. It returns false if they may not be
// added to the vocabulary.
func (b *Builder) read(text string) bool {
	b.words, b.text, b.added = b.words[:0], append(b.text[:0], text...), 0
	last := -1                                    // where the word before begins
	for at := 0; at <= len(text) && text != ""; { // a space at the end has an empty word after it
		end := len(text)
		if i := strings.IndexByte(text[at:], ' '); i >= 0 {
			end = at + i
		}
		if end > at {
			b.note(&b.Vocabulary.words, at, end)
		}
		if last >= 0 {
			left, right := lastRunes(text[last:at-1], reach), firstRunes(text[at:end], reach)
			b.note(&b.Vocabulary.boundaries, at-1-len(left), at+len(right))
		}
		if end-at > maxWord || b.added > maxNew {
			return false
		}
		last, at = at, end+1
	}
	return b.added == 0 || b.Vocabulary.Bytes() < cmp.Or(b.MaxVocabulary, 4<<20)
}

func (b *Builder) note(in *dictionary, from, to int) {
	w := word{in, b.text[from:to], in.number(b.text[from:to])}
	if w.number == unknown {
		b.added += len(w.text) + perWord
	}
	b.words = append(b.words, w)
}

// add appends a slot to the list of a gram, which counts weight times.
func (b *Builder) add(g gram, slot uint16, weight int) {
	l := b.list(g)
	if l.n == 0 {
		b.bytes += weight * entrySize
	}
	before := b.memory.size(l)
	b.memory.add(l, slot)
	b.bytes += weight * (b.memory.size(l) - before)
}

// list returns the list of a gram, which it makes if there is none.
func (b *Builder) list(g gram) *list {
	if 2*len(b.lists) >= len(b.table) {
		b.grow()
	}
	at := b.place(g)
	if b.table[at] == 0 {
		b.lists = append(b.lists, list{gram: g})
		b.table[at] = int32(len(b.lists))
	}
	return &b.lists[b.table[at]-1]
}

// place returns where in the table the gram is, or belongs.
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
	b.memory.reset()
}

// A block is written as its number of lists (8 bytes), their grams (8 each, ascending), where each
// list ends (4 each, counted from the end of these), and the lists. Little endian.
const (
	headSize  = 8
	gramSize  = 8
	endSize   = 4
	entrySize = gramSize + endSize
)

// writeTo writes the block. It adds and sorts lists, so Reset has to follow.
func (b *Builder) writeTo(w *bufio.Writer) error {
	b.derive()
	slices.SortFunc(b.lists, func(x, y list) int { return cmp.Compare(x.gram, y.gram) })
	put := func(bytes []byte) { _, _ = w.Write(bytes) } // Flush says what went wrong
	put(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), uint64(len(b.lists))))
	for i := range b.lists {
		put(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), uint64(b.lists[i].gram)))
	}
	b.written = b.written[:0]
	for i := range b.lists {
		b.written = appendList(b.written, b.memory.cells(&b.lists[i]))
		put(binary.LittleEndian.AppendUint32(w.AvailableBuffer(), uint32(len(b.written))))
	}
	put(b.written)
	return w.Flush()
}

// link is a word that has a gram.
type link struct{ list, next int32 }

// derive makes the lists of the characters, and of the pairs of characters, of words out of the lists of the words: a
// word of many texts is taken apart once.
func (b *Builder) derive() {
	b.links = append(b.links[:0], link{}) // 0 is the end of a chain
	words := len(b.lists)
	for i := range words {
		if k := b.lists[i].gram; k&^numberMask != wordKind {
			continue
		}
		var last rune
		for _, r := range string(b.Vocabulary.words.word(uint32(b.lists[i].gram))) {
			b.link(gramOf(r+1, 0, 0), i)
			if last != 0 {
				b.link(gramOf(last, r+1, 0), i)
			}
			last = r + 1
		}
	}
	var set Set
	for i := words; i < len(b.lists); i++ {
		l := &b.lists[i]
		set = Set{}
		for at := int32(l.run); at != 0; at = b.links[at].next {
			set.addCells(b.memory.cells(&b.lists[b.links[at].list]))
		}
		b.memory.put(l, &set)
	}
}

// link puts a word's list into the chain of a gram, unless it was the last to come.
func (b *Builder) link(g gram, word int) {
	l := b.list(g)
	head := int32(l.run)
	if head != 0 && b.links[head].list == int32(word) {
		return
	}
	l.run = runStart(len(b.links))
	b.links = append(b.links, link{int32(word), head})
}

// listMemory holds many short lists without an allocation for each: cells of 16 bits, in runs whose
// length is a power of two. A list that has filled its run moves to one of twice the length and leaves
// the old one to others. The largest run is as long as a set, and holds one.
type listMemory struct {
	pieces [][]uint16
	used   int                      // cells of all pieces
	free   [setClass + 1][]runStart // runs given back, by class
}

// runStart is where a run begins: the number of a cell, counted through all pieces.
type runStart uint32

const (
	pieceBits  = 19 // a piece is 1 MiB
	pieceCells = 1 << pieceBits

	setCells = setSize / slotSize
	// The runs of class c have 1<<c cells.
	firstClass = 2
	setClass   = 10 // 1<<setClass is setCells
)

func (s *listMemory) reset() {
	s.used = 0
	for class := range s.free {
		s.free[class] = s.free[class][:0]
	}
}

// class returns the class of the run of a list with n slots, at least one.
func class(n int) int { return min(max(firstClass, bits.Len(uint(n-1))), setClass) }

func (s *listMemory) at(start runStart, n int) []uint16 {
	in := start % pieceCells
	return s.pieces[start/pieceCells][in : int(in)+n]
}

// cells returns a list: slots in ascending order, or a set.
func (s *listMemory) cells(l *list) []uint16 {
	if l.n == 0 {
		return nil
	}
	return s.at(l.run, s.size(l)/slotSize)
}

// size returns how many bytes a list takes when it is written, at most.
func (s *listMemory) size(l *list) int { return min(l.n, setCells) * slotSize }

// add appends a slot to the list, unless it is there already as the last one.
func (s *listMemory) add(l *list, slot uint16) {
	if l.n >= setCells {
		s.at(l.run, setCells)[slot/16] |= 1 << (slot % 16)
		return
	}
	if l.n > 0 {
		if s.at(l.run, l.n)[l.n-1] == slot {
			return
		}
		if class(l.n+1) != class(l.n) {
			s.move(l)
		}
	} else {
		l.run = s.take(firstClass)
	}
	s.at(l.run, l.n+1)[l.n] = slot
	if l.n++; l.n == setCells {
		toSet(s.at(l.run, setCells))
	}
}

// toSet turns ascending slots into their set.
func toSet(run []uint16) {
	var set [setCells]uint16
	for _, slot := range run {
		set[slot/16] |= 1 << (slot % 16)
	}
	copy(run, set[:])
}

// move moves a list to a run of twice the length.
func (s *listMemory) move(l *list) {
	old := class(l.n)
	to := s.take(old + 1)
	copy(s.at(to, l.n), s.at(l.run, l.n))
	s.free[old] = append(s.free[old], l.run)
	l.run = to
}

// take returns a free run of a class.
func (s *listMemory) take(class int) runStart {
	if n := len(s.free[class]); n > 0 {
		at := s.free[class][n-1]
		s.free[class] = s.free[class][:n-1]
		return at
	}
	size := 1 << class
	if s.used%pieceCells+size > pieceCells {
		s.used += pieceCells - s.used%pieceCells
	}
	if s.used/pieceCells == len(s.pieces) {
		s.pieces = append(s.pieces, make([]uint16, pieceCells))
	}
	at := runStart(s.used)
	s.used += size
	return at
}

// put makes the list of a set that is not empty.
func (s *listMemory) put(l *list, set *Set) {
	l.n = set.Len()
	if l.n < setCells {
		l.run = s.take(class(l.n))
		run := s.at(l.run, l.n)[:0]
		set.Each(func(slot uint16) bool {
			run = append(run, slot)
			return true
		})
		return
	}
	l.run = s.take(setClass)
	run := s.at(l.run, setCells)
	for i, word := range set {
		run[4*i], run[4*i+1], run[4*i+2], run[4*i+3] = uint16(word), uint16(word>>16), uint16(word>>32), uint16(word>>48)
	}
}
