// Package gramindex finds the texts that hold a needle: inverted lists of grams, in immutable
// blocks mapped from files.
//
// A block covers BlockLen slots of a list. Of each text it has the characters, every three in a
// row, and the last two of every field. An answer is the slots whose text has all grams of the
// needle; for a needle of up to three characters that is exactly those whose text contains it, for
// a longer one a few more, since grams prove neither order nor adjacency. Whoever asks verifies.
//
// # Promises
//
//   - Find never misses a text that contains the needle.
//   - Nothing here waits for another goroutine; there is none.
//   - A block takes at most 2 KB a slot, whatever the texts are: what does not fit is left out, and
//     Add says so.
//   - The files have no name while they are in use, so nothing that happens to the directory harms
//     an answer, and a kill leaves nothing behind. A disk that fails to give a page back makes Find
//     fail, not the process.
//
// # Why
//
// This was an index of bleve (scorch, on disk), of which only the bitmaps were read. It is built
// from maps of terms, document by document; for the 250 grams of an entry that took, in one run on
// the same texts, 15 to 20 times the processor time of the lists here, twice the bytes (it keeps
// a frequency of each), and goroutines that merge when they like and can hang. All that an index of
// texts which are in memory anyway needs is lists. They are cheap enough to be made anew: a
// block whose rows have changed is built again from the rows, so there are no deletions and no
// merges, and the number of a document is its slot, so there is no table from one to the other.
//
// Blocks are mapped files rather than memory of the collector, whose head-room they would double,
// and the system can take their pages back.
package gramindex
