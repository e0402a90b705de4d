// Package textindex finds the texts that contain a needle, by inverted lists in immutable blocks
// that are mapped from files, and a vocabulary of the words in all of them.
//
// A block covers BlockLen slots of a list. A slot has two texts: names (a name and a chat id) and
// words (a reason). Of the names a block holds grams: the characters, every three in a row, and the
// last two of every field. Of the words it holds a list for each word; one for each boundary, which
// is the last two characters of a word, a space, and the first two of the next; lists for each
// character; and the words of each slot in a row, two bytes each. A Vocabulary numbers words and
// boundaries and keeps them in one text with a suffix array.
//
// A needle without a space is in a text when it is in one of its words. So the vocabulary tells
// which words contain it, and the answer is the union of their lists: nobody looks at a text. A
// needle with a space needs its boundaries and its whole words. Where it has one space, a text
// without any other word that ends or begins like the needle's two then contains it; of the other
// texts the block looks at the words in their row. One character has a list of its own. Names with
// all grams of the needle are certain up to three characters; longer needles need a look at the
// names.
//
// # Promises
//
//   - Find never misses a text that contains the needle, and what it is sure of contains it.
//   - Nothing here starts a goroutine or waits for one.
//   - A block takes at most 2 KB a slot, and the vocabulary what Builder.MaxVocabulary says,
//     whatever the texts are. What does not fit is left out, and Add says so.
//   - Files have no name, so nothing that happens to the directory harms an answer, and a killed
//     process leaves nothing. A disk that fails to give a page back makes Find fail, not the
//     process.
//
// # Why
//
// Until this package, the words were indexed by grams too. Most of what a search cost then was the
// look at texts that do contain the needle, since grams prove neither order nor adjacency. With
// words there is nothing to look at, and an entry takes half as many bytes, since most of its grams
// are those of words that many entries share. BenchmarkSearch of package readmodel measures both
// kinds of needle.
//
// An index of bleve (scorch) for the same purpose needs 23 times as long to build and 4.5 times the
// space; it builds from maps of terms, document by document, and builds again as it merges, in
// goroutines that run when they like and can hang. An index of texts that are in memory anyway
// needs only lists, and lists are cheap enough to build again: a block whose rows have changed is
// built from the rows, so there are no deletions and no merges. The number of a document is its
// slot, so there is no table from one to the other.
//
// The vocabulary only grows; package exact begins another one from time to time. New words are
// looked through until a quarter as much has come as is sorted; then all is sorted again.
//
// Blocks are mapped files rather than memory of the garbage collector, which would need twice as
// much, and the system can take their pages back.
//
// Grams and words are numbered by maps. Hash tables of this package's own, of 4 bytes an item,
// saved no time that could be measured: an index of a million entries took 4.7 s of processor time
// with either.
//
// # The parts
//
//   - block.go: Block, which is searched; query.go: Query, what of the needle is looked up in it.
//   - builder.go: Builder, which makes a block of texts; file.go: Dir, where it is written and
//     mapped.
//   - vocabulary.go: Vocabulary, the words of all blocks; grams.go: the grams of names.
//   - set.go: Set, slots of a block; needle.go: Needle, which looks at a text itself.
package textindex
