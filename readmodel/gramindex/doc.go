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
// This was an index of bleve (scorch, on disk), of which only the bitmaps were read. It is kept among
// the tests: TestTwinBleve asks both the same, BenchmarkAgainstBleve measures both with the same texts.
// At 20 000 entries, 370 grams of bleve's each, medians of five (go test -run '^$' -bench AgainstBleve
// -count 5 ./readmodel/gramindex, for benchstat -col /of):
//
//	                          bleve   blocks   ratio
//	indexing, processor-µs    288     12.4     23     an entry
//	on disk, bytes            1212    268      4.5    an entry; bleve comes to 920 once all is merged
//	rare, processor-µs        86      4.8      18     a needle; blocks name a few more to verify
//	word in many              108     13.0     8.3
//	two characters            50      15.8     3.2
//
// Bleve builds from maps of terms, document by document, and makes them anew as it merges, in goroutines
// that do so when they like and can hang. All that an index of texts which are in memory anyway needs is
// lists. A third of the grams is not even needed: two characters are found as the beginning of three.
// Lists are cheap enough to be made anew: a block whose rows have changed is built again from the rows,
// so there are no deletions and no merges, and the number of a document is its slot, so there is no
// table from one to the other.
//
// Blocks are mapped files rather than memory of the collector, whose head-room they would double,
// and the system can take their pages back.
package gramindex
