// Package ranked answers ranked search (httpapi/CONTRACT.md#ranked) from an index of bleve's on disk. An Indexer follows a
// model in a goroutine that nobody waits for, and publishes what it has; an Answerer answers from that and from a view.
// Start with Indexer.Run, then Answerer.Search.
//
// # Promises
//
//   - Every entry of an answer is one of the view's, with its text of the view, and totals and facets count those alone. An
//     entry that has changed since the index's sequence is looked at, and left out if it no longer has the words. So
//     whoever is delisted is never shown, whatever the index still holds.
//   - An index of another stream, data set or version, one that is ahead of the model, damaged, emptier than it says or that
//     hangs is set aside and made anew, and Trouble says why. Until then there is no index; nothing else waits or notices.
//   - A process that dies between any two steps leaves an index that fits what it says of itself. The next one finds out which
//     rows it lacks by the stamp of every document.
//   - The index takes a quarter of the processors at most while somebody else wants them, bleve's merges included, and a thirty-second
//     while the model is being filled or readers take more than that themselves: neither waits for ranked search.
//
// # The index
//
// A document is an entry, known by the number of its list and its entry id. Its fields are terms of package terms: of the
// name, the chat id (its digits packed, two in a byte) and the reason, which are scored, and the words as they were written
// (wordKey), in which unaccented questions find the accented words that they mean, and misspelt ones other spellings. What an
// entry is filtered by is not in the index: the view knows it. A document keeps the stream sequence of its entry's last change,
// so that whether it is true of a model is a comparison of two numbers. The state of the whole (type state) is in every batch.
//
// A table of each segment, in memory, tells which row each of its documents was made of: 8 bytes a document. Segments do not
// change, so a table is made once, at a look at every document of a new segment. What the looks found, the stamps (sequence and
// lengths), is written to a file beside the segment's, 12 bytes a document, from which the next process makes the table: a row is
// known by the sequence of its last change. A file of stamps names the checksum and the size of its segment and has a checksum of
// its own. One that is missing, damaged or another segment's costs a look at the documents, and so does a document of which
// the file knows no row of now.
//
// # Why
//
// Questions are answered from bleve's postings, not by its searchers. Those cost 140 ns a hit and a word, ask for the id of
// each hit as a string, and cannot filter by what the view knows. Here the words' postings are united and intersected as
// bitmaps, filtered by row, and only what is left is scored.
//
// The formula is BM25 as Lucene has it, with k1 = 1.2 and b = 0.75. How often a word occurs and how long a text is on average are counted
// over documents that are not deleted. bleve's own count of lengths is of distinct terms by segment, and changes with merges.
//
// Most of the cost of an entry is in the dictionaries of what only one entry has, of document ids and chat ids: they are packed, and merged as
// seldom as can be. While much is to be indexed a batch is 8192 entries, and eight segments of a size are merged at once.
//
// bleve's segments are its own, made through a plugin (segments) by which merges pay for their time to the same governor as the
// analysis. It measures time as it passes: where others hold the processors the index takes less than its share. What bleve does between
// two words of a dictionary cannot be interrupted, so that a merge may go on for a second and rests for it then.
//
// Batches are "unsafe" to bleve: visible at once, on the disk within a tenth of a second. The index is a cache of the read model, so
// that a lost batch costs its work again and nothing else.
//
// Measured by BenchmarkRanked at 1 000 000 entries on two processors that nobody else wanted: 21 000 to 26 000 entries a second, 56–121 µs of
// processor time and 190 bytes on the disk each, 26 MiB of heap; a question of two words p99 19 ms, a suggestion 10 ms, ten frequent
// words 20 ms; 1000 changes a second take a sixth of a processor. At 100 000, in turns with what it was before: 64–111 µs an entry
// (139–157), a question of two words p99 7.6 ms (11.6), changes 18–23 % of a processor (27–65). With every written word in the
// dictionary of words, rather than only those that are not their own term, the disk took 330 bytes an entry at 100 000 instead of 237.
// Opening it again takes 13 ms at 100 000 (119 without files of stamps). At 1 000 000, in a server that is busy with what else it has
// to do when it is ready, 0.4–0.6 s instead of 2.1–2.6; 0.2 s of that is work: the files' checksums, the stemmer, a look-up of each stamp.
//
// # bleve 2.6.0
//
// It is imported without its root package, which starts goroutines at import. What it does not do is done here: it verifies no
// checksum (damagedFiles), may fault beyond the end of its bbolt file (shortBolt), may wait for ever for the lock of its directory
// (bolt_timeout), and reports the death of a background goroutine only to a callback (store.fail). The two tables of callbacks
// are global; registering guards them.
package ranked
