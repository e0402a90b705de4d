// Package textindex finds the texts that contain a needle, by inverted lists in immutable blocks
// that are mapped from files, and a vocabulary of the words in all of them.
//
// A block covers BlockLen slots of a list. A slot has two texts: names (a name and a chat id) and
// words (a reason). The block indexes names by grams: each character, every three in a row, and the
// last two of each field. It indexes words by
//
//   - a list of slots for each word;
//   - one for each boundary: the last two characters of a word, a space, and the first two of the
//     next;
//   - one for each character;
//   - the words of each slot in their order, two bytes each.
//
// A sieve of hashes rules out most blocks for most names. It hashes every six characters in a row
// of a name and every three of a chat id.
//
// A Vocabulary numbers words and boundaries, and keeps them in one text with a suffix array.
//
// A text contains a needle without a space if one of its words does. The vocabulary finds these
// words, and the result is the union of their lists, without reading a text. A text contains a
// needle with a space only if it has the needle's boundaries and whole words. That suffices if the
// needle has one space and no other word of the text ends or begins as the needle's two do.
// Otherwise the block compares the words in their order. A needle of one character has its list. In
// names, the grams prove needles of up to three characters; for longer ones the caller reads the
// names.
//
// # Promises
//
//   - Find never misses a text that contains the needle, and every text that it reports as sure
//     contains it.
//   - Nothing here starts a goroutine or waits for one.
//   - A block takes at most 2 KB a slot, and the vocabulary at most Builder.MaxVocabulary, regardless
//     of the texts. Add reports texts that do not fit, and leaves them out.
//   - A file is removed as soon as it is mapped, so no damage to the directory harms a result, and a
//     killed process leaves nothing. If the disk fails to read a page, Find fails, not the process.
//
// # Why
//
// Words were once indexed by grams too. Searches then spent most of their time on texts that do
// contain the needle, since grams prove neither order nor adjacency. With lists of words no text
// has to be read. An entry also takes half as many bytes, since most of its grams are parts of
// words that many entries share. BenchmarkSearch of package readmodel measures both kinds of
// needle.
//
// An index of bleve (scorch) for the same purpose takes 23 times as long to build and 4.5 times the
// space. It builds maps of terms, document by document, and again at each merge, in goroutines of
// its own that can hang. Here the texts are in memory anyway, so the index needs only lists. A
// block whose rows have changed is rebuilt from the rows, without deletions and merges. The number
// of a document is its slot, so no table translates between them.
//
// The vocabulary only grows; package exact replaces it from time to time. New words are scanned one
// by one until they are a quarter of the sorted ones; then all are sorted again.
//
// Blocks are mapped files, not Go memory. The garbage collector would need twice as much, and the
// system can evict their pages.
//
// Without sieves, a check of a name looked up grams in every block, 62 of them at 1,000,000
// entries. Most checks of a name with a number now look them up in one to five. A sieve takes two
// bytes an entry. Together with reading each row only once, sieves raised checks of new names, with
// similar names, from 4,078 to 27,677 a second on two CPUs. Runs of five characters let twice as
// many blocks through.
//
// Maps number grams and words. Hash tables of the package's own, of 4 bytes an item, saved no time:
// an index of a million entries took 4.7 s of CPU time with either.
//
// # The parts
//
//   - block.go: Block, which is searched; query.go: Query, the parts of a needle to look up.
//   - builder.go: Builder, which makes a block of texts; file.go: Dir, where it is written and
//     mapped.
//   - sieve.go: the filter that rules out blocks.
//   - vocabulary.go: Vocabulary, the words of all blocks; grams.go: the grams of names.
//   - set.go: Set, slots of a block.
package textindex
