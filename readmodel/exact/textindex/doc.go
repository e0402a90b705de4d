// Package textindex finds the texts that contain a needle, by inverted lists in immutable blocks
// that are mapped from files, and a vocabulary of the words in all of them.
//
// A block covers BlockLen slots of a list. A slot has two texts: names (a name and a chat id) and
// words (a reason). Of the names a block has the grams: each character, every three in a row, and
// the last two of each field. Of the words it has
//
//   - a list of slots for each word;
//   - one for each boundary: the last two characters of a word, a space, and the first two of the
//     next;
//   - one for each character;
//   - the words of each slot in their order, two bytes each.
//
// A sieve of hashes, of six characters of a name in a row and of three of a chat id, rules out most
// blocks for most names.
//
// A Vocabulary numbers words and boundaries, and keeps them in one text with a suffix array.
//
// A needle without a space is in a text if it is in one of its words. The vocabulary says which
// words contain it, and the answer is the union of their lists, without a look at any text. A text
// contains a needle with a space only if it has the needle's boundaries and its whole words. That
// is enough if the needle has one space and no other word of the text ends or begins as its two do;
// otherwise the block compares the words in their order. A needle of one character has its list. In
// names, the grams prove needles of up to three characters; for longer ones the caller looks at the
// names.
//
// # Promises
//
//   - Find never misses a text that contains the needle, and what it is sure of contains it.
//   - Nothing here starts a goroutine or waits for one.
//   - A block takes at most 2 KB a slot, and the vocabulary what Builder.MaxVocabulary says,
//     whatever the texts are. What does not fit is left out, and Add says so.
//   - A file is removed as soon as it is mapped, so nothing that happens to the directory harms an
//     answer, and a killed process leaves nothing. If the disk fails to give a page back, Find
//     fails, not the process.
//
// # Why
//
// Words were once indexed by grams too. Searches then spent most of their time on texts that do
// contain the needle, since grams prove neither order nor adjacency. With lists of words there is
// nothing to look at, and an entry takes half as many bytes, since most of its grams are those of
// words that many entries share. BenchmarkSearch of package readmodel measures both kinds of
// needle.
//
// An index of bleve (scorch) for the same purpose takes 23 times as long to build and 4.5 times the
// space. It builds from maps of terms, document by document, and again when it merges, in
// goroutines of its own that can hang. Here the texts are in memory anyway, so the index needs only
// lists, and lists are cheap to build again: a block whose rows have changed is built from the
// rows, without deletions and merges. The number of a document is its slot, so no table leads from
// one to the other.
//
// The vocabulary only grows; package exact begins another one from time to time. New words are
// looked through one by one until they are a quarter of the sorted ones; then all are sorted again.
//
// Blocks are mapped files, not Go memory: the garbage collector would need twice as much, and the
// system can take their pages back.
//
// Without sieves, a check of a name looked up grams in every block, 62 of them at 1,000,000 entries;
// most checks of a name with a number now look them up in one to five. It takes two bytes an entry.
// Together with a single look at each row it took the names that nobody had asked for, similar ones
// among them, from 4,078 checks a second to 27,677, one build after the other on two CPUs. Runs
// of five characters let twice as many blocks through.
//
// Maps number grams and words. Hash tables of the package's own, of 4 bytes an item, saved no time:
// an index of a million entries took 4.7 s of CPU time with either.
//
// # The parts
//
//   - block.go: Block, which is searched; query.go: Query, what of the needle is looked up in it.
//   - builder.go: Builder, which makes a block of texts; file.go: Dir, where it is written and
//     mapped.
//   - sieve.go: what rules out a block.
//   - vocabulary.go: Vocabulary, the words of all blocks; grams.go: the grams of names.
//   - set.go: Set, slots of a block.
package textindex
