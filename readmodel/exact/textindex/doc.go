// Package textindex finds the texts that contain a needle, by inverted lists in immutable blocks
// that are mapped from files, and a vocabulary of the words in all of them.
//
// A block covers readmodel.BlockLen slots of a list. A slot has two texts: names (a name and a chat id) and
// words (a reason). The block indexes names by grams: each character, every three in a row, and the
// last two of each field. It indexes words by
//
//   - a list of slots for each word;
//   - one for each boundary: the last two characters of a word, a space, and the first two of the
//     next;
//   - one for each character.
//
// A sieve of hashes rules out most blocks for most names. It hashes every six characters in a row
// of a name and every three of a chat id.
//
// A Vocabulary numbers words and boundaries, and keeps them in one text with a suffix array.
//
// A text contains a needle without a space if one of its words does. The vocabulary finds these
// words, and the result is the union of their lists, without reading a text. A text contains a
// needle with a space only if it has the needle's boundaries and whole words, which the lists prove
// for a needle that is within one boundary; else the caller reads these texts. A needle of one
// character has its list. In names, the grams prove needles of up to three characters; for longer
// ones the caller reads the names.
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
// Indexing words by grams took twice the bytes, and most texts that contain a needle had to be read.
// Boundaries make frequent phrases twenty times as fast; storing the order of words made them twice as
// fast again, in 230 lines.
//
// An index of bleve (scorch) for the same purpose takes 23 times as long to build and 4.5 times the
// space. Here the texts are in memory anyway, so the index needs only lists, and a block whose rows
// have changed is rebuilt from the rows, without deletions and merges.
//
// The vocabulary only grows; package exact replaces it from time to time. New words are scanned one
// by one until they are a quarter of the sorted ones; then all are sorted again.
//
// Blocks are mapped files, not Go memory. The garbage collector would need twice as much, and the
// system can evict their pages.
//
// A sieve takes two bytes an entry; without it a check of a name at 1,000,000 entries takes seven times
// as long.
//
// # The parts
//
//   - block.go: Block, which is searched; query.go: Query, the parts of a needle to look up.
//   - builder.go: Builder, which makes a block of texts; file.go: Dir, where it is written and
//     mapped.
//   - sieve.go: the filter that rules out blocks.
//   - vocabulary.go: Vocabulary, the words of all blocks; grams.go: the grams of names.
//   - list.go: the encoded lists of slots.
package textindex
