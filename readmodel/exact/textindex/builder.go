package textindex

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"example.org/registry/readmodel"
)

// Builder collects the texts of one block. One goroutine owns it, and its Vocabulary while it adds.
// It takes about three times the memory of the largest block that it built. It is ready once
// Vocabulary is set.
//
// Add only makes notes, slot after slot. The lists are made from the notes when the block is
// written. Appending to thousands of lists in turns would wait for memory at each slot.
type Builder struct {
	// Vocabulary numbers the words. Required. Builders used in turns may share it.
	Vocabulary *Vocabulary
	// MaxVocabulary bounds the Vocabulary, in bytes: beyond it, texts with new words are left out.
	// Zero means 4 MiB.
	MaxVocabulary int

	lists    []list
	grams    map[gram]int32 // the lists of grams: positions in lists
	numbered [2][]int32     // the lists of words and of boundaries, by number: positions in lists, plus one
	slots    []slotNotes    // ascending
	postings []uint32       // the lists, each at most once a slot
	sieve    [sieveSize]byte
	bytes    int // upper bound of the block's size so far
	limit    int // of bytes; zero means maxBlock

	// Scratch, kept for its memory.
	words   []word // of the text that is added
	added   int    // bytes that they and their boundaries add to the vocabulary
	text    []byte
	cells   []uint16 // the slots of all lists
	links   []link
	written []byte
}

// list is the slots of one gram, word or boundary.
type list struct {
	gram  gram
	n     int32  // slots in it
	last  int32  // the last slot, plus one
	start uint32 // of its slots in Builder.cells, once filled
	links int32  // of a derived list: the first of its words
}

// slotNotes is the end of a slot's notes.
type slotNotes struct {
	slot     uint16
	postings uint32
}

// word is a word of a text, and the boundary before it.
type word struct {
	text     []byte
	number   uint32 // or unknown, if it is new
	boundary uint32 // noNumber for the first word; unknown if it is new
	joined   []byte // the boundary's text, if it is new
}

const (
	// maxBlock bounds a block to five times what typical entries take. Texts that no longer fit are
	// left out.
	maxBlock = readmodel.BlockLen * 2048
	// maxNotes bounds the notes of a block. A word and its boundary take one each.
	maxNotes = readmodel.BlockLen * 1024
	// maxNew bounds the bytes that one text adds to the vocabulary: about two hundred new words. A
	// text with more is left out: it takes no memory, and each search scans it.
	maxNew = 8 << 10
	// perWord is the memory of a new word besides its bytes.
	perWord = 16
	// maxWord is the longest word that is indexed, in bytes. No needle is longer.
	maxWord = 512
)

// Add adds the texts of a slot: names in fields separated by newlines, and words separated by
// single spaces. Slots come in ascending order. If the texts do not fit, it returns false, and
// searches have to scan the slot.
func (b *Builder) Add(slot uint16, names, words string) bool {
	// A text adds at most a new gram at each character, and a word, a boundary and a character's
	// list.
	size := len(names) + len(words)
	if headSize+b.bytes+2*size*(entrySize+slotSize) > cmp.Or(b.limit, maxBlock) || len(b.postings)+3*size > maxNotes || !b.read(words) {
		return false
	}
	b.sift(names)
	eachGram(names, func(g gram) { b.post(b.gramList(inNames|g), slot, 1) })
	for i := range b.words {
		w := &b.words[i]
		if w.boundary != noNumber {
			if w.boundary == unknown {
				w.boundary = b.Vocabulary.boundaries.add(w.joined)
			}
			b.post(b.numberedList(boundaryKind, w.boundary), slot, 1)
		}
		if len(w.text) == 0 {
			continue
		}
		if w.number == unknown {
			w.number = b.Vocabulary.words.add(w.text)
		}
		// Lists derived from the word's take at most as much for each of its characters.
		b.post(b.numberedList(wordKind, w.number), slot, 1+len(w.text))
	}
	b.slots = append(b.slots, slotNotes{slot, uint32(len(b.postings))})
	return true
}

// read splits a text into its words and the boundaries between them. It returns false if they do
// not fit into the vocabulary.
func (b *Builder) read(text string) bool {
	v := b.Vocabulary
	b.words, b.text, b.added = b.words[:0], append(b.text[:0], text...), 0
	before := -1                                  // start of the word before
	for at := 0; at <= len(text) && text != ""; { // an empty word follows a space at the end
		end := len(text)
		if i := strings.IndexByte(text[at:], ' '); i >= 0 {
			end = at + i
		}
		w := word{text: b.text[at:end], number: noNumber, boundary: noNumber}
		if end > at {
			if w.number = v.words.number(w.text); w.number == unknown {
				b.added += len(w.text) + perWord
			}
		}
		if before >= 0 {
			left, right := lastRunes(text[before:at-1], reach), firstRunes(text[at:end], reach)
			w.joined = b.text[at-1-len(left) : at+len(right)]
			if w.boundary = v.boundaries.number(w.joined); w.boundary == unknown {
				b.added += len(w.joined) + perWord
			}
		}
		if end-at > maxWord || b.added > maxNew {
			return false
		}
		b.words = append(b.words, w)
		before, at = at, end+1
	}
	return b.added == 0 || v.Bytes() < cmp.Or(b.MaxVocabulary, 4<<20)
}

// post notes that a slot is in a list, once. The list's bytes weigh weight.
func (b *Builder) post(at int, slot uint16, weight int) {
	l := &b.lists[at]
	if l.last == int32(slot)+1 {
		return
	}
	if l.n == 0 {
		b.bytes += weight * entrySize
	}
	if l.n < setSize/slotSize {
		b.bytes += weight * slotSize
	}
	l.n, l.last = l.n+1, int32(slot)+1
	b.postings = append(b.postings, uint32(at))
}

// gramList returns the list of a gram, and makes it if it is missing.
func (b *Builder) gramList(g gram) int {
	at, ok := b.grams[g]
	if !ok {
		if b.grams == nil {
			b.grams = map[gram]int32{}
		}
		at = int32(len(b.lists))
		b.lists = append(b.lists, list{gram: g})
		b.grams[g] = at
	}
	return int(at)
}

// numberedList returns the list of a word or a boundary, and makes it if it is missing.
func (b *Builder) numberedList(kind gram, number uint32) int {
	of := &b.numbered[(kind>>(2*charBits))&1]
	for int(number) >= len(*of) {
		*of = append(*of, 0)
		*of = (*of)[:cap(*of)]
	}
	if (*of)[number] == 0 {
		b.lists = append(b.lists, list{gram: kind | gram(number)})
		(*of)[number] = int32(len(b.lists))
	}
	return int((*of)[number] - 1)
}

// Reset makes the builder ready for another block.
func (b *Builder) Reset() {
	clear(b.grams)
	clear(b.numbered[0])
	clear(b.numbered[1])
	clear(b.sieve[:])
	b.lists, b.slots, b.postings, b.bytes = b.lists[:0], b.slots[:0], b.postings[:0], 0
}

// A block is written as its number of lists (8 bytes), its sieve, the grams of the lists (8 each,
// ascending), where each list ends (4 each, counted from the end of these), and the lists. Little
// endian.
const (
	countSize = 8
	headSize  = countSize + sieveSize
	gramSize  = 8
	endSize   = 4
	entrySize = gramSize + endSize
)

// writeTo writes the block. It adds and sorts lists, so Reset must follow.
func (b *Builder) writeTo(w *bufio.Writer) error {
	b.fillCells()
	b.derive()
	order := make([]int32, len(b.lists))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int { return cmp.Compare(b.lists[x].gram, b.lists[y].gram) })
	put := func(bytes []byte) { _, _ = w.Write(bytes) } // Flush returns the error
	put(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), uint64(len(order))))
	put(b.sieve[:])
	for _, i := range order {
		put(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), uint64(b.lists[i].gram)))
	}
	b.written = b.written[:0]
	for _, i := range order {
		b.written = appendList(b.written, b.slotsOf(&b.lists[i]))
		put(binary.LittleEndian.AppendUint32(w.AvailableBuffer(), uint32(len(b.written))))
	}
	put(b.written)
	return w.Flush()
}

// fillCells makes the lists from the notes.
func (b *Builder) fillCells() {
	total := uint32(0)
	for i := range b.lists {
		l := &b.lists[i]
		l.start = total
		total += uint32(l.n)
		l.n = 0
	}
	b.cells = slices.Grow(b.cells[:0], int(total))[:total]
	from := uint32(0)
	for _, s := range b.slots {
		for ; from < s.postings; from++ {
			l := &b.lists[b.postings[from]]
			b.cells[l.start+uint32(l.n)] = s.slot
			l.n++
		}
	}
}

// slotsOf returns the slots of a list, ascending.
func (b *Builder) slotsOf(l *list) []uint16 { return b.cells[l.start:][:l.n] }

// link is a word that has a gram.
type link struct{ list, next int32 }

// derive makes the lists of the characters of words from the lists of the words. It splits a word
// once, however many texts have it.
func (b *Builder) derive() {
	b.links = append(b.links[:0], link{}) // 0 is the end of a chain
	words := len(b.lists)
	for i := range words {
		if b.lists[i].gram.kind() == wordKind {
			for _, r := range string(b.Vocabulary.words.word(uint32(b.lists[i].gram))) {
				b.link(gramOf(r+1, 0, 0), i)
			}
		}
	}
	var set readmodel.Slots
	for i := words; i < len(b.lists); i++ {
		l := &b.lists[i]
		set.Clear()
		for at := l.links; at != 0; at = b.links[at].next {
			for _, slot := range b.slotsOf(&b.lists[b.links[at].list]) {
				set.Add(slot)
			}
		}
		l.start = uint32(len(b.cells))
		set.Each(func(slot uint16) bool {
			b.cells = append(b.cells, slot)
			return true
		})
		l.n = int32(len(b.cells)) - int32(l.start)
	}
}

// link puts a word's list into the chain of a gram, unless it is the chain's latest.
func (b *Builder) link(g gram, word int) {
	l := &b.lists[b.gramList(g)]
	head := l.links
	if head != 0 && b.links[head].list == int32(word) {
		return
	}
	l.links = int32(len(b.links))
	b.links = append(b.links, link{int32(word), head})
}
