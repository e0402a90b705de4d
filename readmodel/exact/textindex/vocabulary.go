package textindex

import (
	"bytes"
	"index/suffixarray"
	"slices"
	"sync/atomic"
)

// Vocabulary numbers the words of all blocks that use it, and finds those that contain a text. One
// goroutine owns it and adds; any goroutine may search what has been published. Make one with
// NewVocabulary.
type Vocabulary struct {
	words, boundaries dictionary
}

// NewVocabulary makes an empty Vocabulary.
func NewVocabulary() *Vocabulary {
	return &Vocabulary{words: newDictionary(), boundaries: newDictionary()}
}

// Bytes returns the length of all words and boundaries. It only grows: words of deleted texts stay
// until everything is indexed with another Vocabulary.
func (v *Vocabulary) Bytes() int { return len(v.words.text) + len(v.boundaries.text) }

// Sort sorts all words. Until then, searches scan the latest quarter of them. It takes about 0.1 s
// a megabyte.
func (v *Vocabulary) Sort() {
	v.words.publishSorted(0)
	v.boundaries.publishSorted(0)
}

// publish makes the added words visible to searches.
func (v *Vocabulary) publish() {
	v.words.publish()
	v.boundaries.publish()
}

// dictionary numbers texts in order of arrival.
type dictionary struct {
	text    []byte   // a separator, then each word with a separator after it
	starts  []uint32 // where each word starts in text
	numbers map[string]uint32
	sorted  sorted

	published atomic.Pointer[lexicon]
}

func newDictionary() dictionary {
	return dictionary{text: []byte{separator}, numbers: map[string]uint32{}}
}

// add returns the number of word, and assigns one if it is new.
func (d *dictionary) add(word []byte) uint32 {
	if n, ok := d.numbers[string(word)]; ok {
		return n // a text may have a new word twice
	}
	n := uint32(len(d.starts))
	d.starts = append(d.starts, uint32(len(d.text)))
	d.text = append(append(d.text, word...), separator)
	d.numbers[string(word)] = n
	return n
}

// These are not numbers of words.
const (
	unknown  = 1<<32 - 1
	noNumber = 1<<32 - 2
)

// number returns the number of word, or unknown.
func (d *dictionary) number(word []byte) uint32 {
	if n, ok := d.numbers[string(word)]; ok {
		return n
	}
	return unknown
}

func (d *dictionary) word(n uint32) []byte {
	end := len(d.text)
	if int(n)+1 < len(d.starts) {
		end = int(d.starts[n+1])
	}
	return d.text[d.starts[n] : end-1]
}

// minUnsorted is the size of text that costs less to scan than to sort.
const minUnsorted = 1 << 16

// publish shares the text with searches. It sorts the whole text again once a quarter as much is
// unsorted, so each word is sorted only a few times.
func (d *dictionary) publish() {
	if last := d.published.Load(); last == nil || len(last.text) < len(d.text) {
		d.publishSorted(max(minUnsorted, d.sorted.end/4))
	}
}

// publishSorted publishes the text, and first sorts all of it if more than unsorted bytes are unsorted.
func (d *dictionary) publishSorted(unsorted int) {
	if len(d.text)-d.sorted.end > unsorted {
		d.sorted = sortText(d.text, d.starts)
	}
	d.published.Store(&lexicon{text: d.text, starts: d.starts, sorted: d.sorted})
}

// sorted is a suffix array of the beginning of a dictionary's text. Immutable.
type sorted struct {
	end      int // of the sorted text
	suffixes *suffixarray.Index
	first    []uint32 // for each step of the text, the number of the word of its first byte
}

// step is how much text an item of first covers: about eight words.
const step = 64

func sortText(text []byte, starts []uint32) sorted {
	s := sorted{end: len(text), suffixes: suffixarray.New(text), first: make([]uint32, len(text)/step+1)}
	n := uint32(0)
	for i := range s.first {
		for int(n)+1 < len(starts) && int(starts[n+1]) <= i*step {
			n++
		}
		s.first[i] = n
	}
	return s
}

// lexicon is a dictionary at one moment. Immutable.
type lexicon struct {
	text   []byte
	starts []uint32
	sorted sorted
}

// containing returns the words in whose text, including a separator on either side, the needle
// occurs.
func (l *lexicon) containing(needle []byte) wordSet {
	var found wordSet
	if l == nil {
		return found
	}
	var at []int
	if l.sorted.suffixes != nil {
		at = l.sorted.suffixes.Lookup(needle, -1)
	}
	found.numbers = make([]uint32, 0, len(at))
	for _, at := range at {
		found.numbers = append(found.numbers, l.numberAt(at, needle))
	}
	// The sorted text ends with a separator, with which the first word after it begins.
	for from := max(l.sorted.end-1, 0); ; {
		i := bytes.Index(l.text[from:], needle)
		if i < 0 {
			break
		}
		found.numbers = append(found.numbers, l.numberAfter(from+i, needle))
		from += i + 1
	}
	slices.Sort(found.numbers)
	found.numbers = slices.Compact(found.numbers)
	found.spread(len(l.starts))
	return found
}

// numberAt returns the number of the word at a position of the sorted text. A separator in front
// belongs to the word after it.
func (l *lexicon) numberAt(at int, needle []byte) uint32 {
	if needle[0] == separator {
		at++
	}
	n := l.sorted.first[min(at/step, len(l.sorted.first)-1)]
	for int(n)+1 < len(l.starts) && int(l.starts[n+1]) <= at {
		n++
	}
	return n
}

// numberAfter is numberAt for any position of the text.
func (l *lexicon) numberAfter(at int, needle []byte) uint32 {
	if needle[0] == separator {
		at++
	}
	n, found := slices.BinarySearch(l.starts, uint32(at))
	if !found {
		n--
	}
	return uint32(n)
}

// wordSet is a set of words. Immutable.
type wordSet struct {
	numbers []uint32 // ascending
	bits    []uint64 // the same as a set of bits; nil if there are few
}

// spread makes the set of bits if there are enough numbers. words is the number of all words.
func (s *wordSet) spread(words int) {
	if len(s.numbers) <= manyWords {
		return
	}
	s.bits = make([]uint64, words/64+1)
	for _, n := range s.numbers {
		s.bits[n/64] |= 1 << (n % 64)
	}
}

// manyWords is how many words justify a set of bits.
const manyWords = 256

func (s *wordSet) has(n uint32) bool {
	return int(n/64) < len(s.bits) && s.bits[n/64]>>(n%64)&1 != 0
}
