// Package ranked answers ranked search (httpapi/CONTRACT.md#ranked) from an index of bleve's on
// disk. An Engine keeps the index of a model, to which package indexing gives its life; a Searcher
// answers from what it has published and from a view. Start with follower.Follow, then
// Searcher.Search.
//
// # Promises
//
//   - Every entry of an answer is one of the view's, with its text of the view, and totals and
//     facets count those alone. An entry that has changed since the index's sequence is looked at,
//     and left out if it no longer has the words. So whoever is delisted is never shown, whatever
//     the index still holds.
//   - An index of another stream, data set or version, one that is ahead of the model, damaged,
//     emptier than it says or that hangs is set aside and made anew, and Trouble says why. Until
//     then there is no index; nothing else waits or notices.
//   - A process that dies between any two steps leaves an index that fits what it says of itself,
//     or says that it was being opened. The next one looks at every document and finds out which
//     rows the index lacks; one that was being opened is made anew. So files that kill the process
//     do so once.
//   - Readers and imports do not wait for ranked search: see least.
//
// # The index
//
// A document is an entry, known by the number of its list and its entry id. Its fields are terms of
// package terms: of the name, the chat id (its digits packed, two in a byte) and the reason, which
// are scored, and the words as they were written (wordKey), in which unaccented questions find the
// accented words that they mean, and misspelt ones other spellings. What an entry is filtered by is
// not in the index: the view knows it. A document keeps the stream sequence of its entry's last
// change, so that whether it is true of a model is a comparison of two numbers. The state of the
// whole (type state) is in every batch.
//
// A table of each segment, in memory, tells which row each of its documents was made of: 8 bytes a
// document. Segments do not change, so a table is made once, at a look at every document of a new
// segment. An index that is opened costs a look at all: 0.12 s at 100 000 entries, and 2.1 to 2.6 s
// at 1 000 000 in a server that has just become ready. Files that kept what was found made that
// 0.01 and 0.5 s, with 420 lines.
//
// # The analysis
//
// What becomes of a word is numbered (terms.Version), and what becomes of an entry, too (format).
// An index of other numbers is made anew. Tests fail when either changes and its number does not
// (readmodel/CHANGING.md#the-analysis-of-ranked-search).
//
// # Why
//
// Questions are answered from bleve's postings, not by its searchers. Those cost 140 ns a hit and a
// word, ask for the id of each hit as a string, and cannot filter by what the view knows. Here the
// words' postings are united and intersected as bitmaps, filtered by row, and only what is left is
// scored.
//
// The formula is BM25 as Lucene has it, with k1 = 1.2 and b = 0.75. How often a word occurs and how
// long a text is on average are counted over documents that are not deleted. bleve's own count of
// lengths is of distinct terms by segment, and changes with merges.
//
// Most of the cost of an entry is in the dictionaries of what only one entry has, of document ids
// and chat ids: they are packed, and merged as seldom as can be. While much is to be indexed a
// batch is 8192 entries, and eight segments of a size are merged at once.
//
// bleve merges segments in a goroutine of its own, without a rest. What a merge took is paid for
// with a rest before the next one begins (store.event).
//
// Batches are "unsafe" to bleve: visible at once, on the disk within a tenth of a second. The index
// is a cache of the read model, so that a lost batch costs its work again and nothing else.
//
// Measured by BenchmarkRanked before package terms had its lexicon, at a million entries on two
// processors that nobody else wanted: 21 to 26 thousand entries a second, 56–121 µs of processor
// time and 190 bytes on the disk each, 26 MiB of heap; a question of two words p99 19 ms, a
// suggestion 10 ms, ten frequent words 20 ms; 1000 changes a second take a sixth of a processor.
// With every written word in the dictionary of words, rather than only those that are not their own
// term, the disk took 330 bytes an entry at 100 000 instead of 237.
//
// # bleve 2.6.0
//
// It is imported without its root package, which starts goroutines at import. What it does not do
// is done here: it verifies no checksum (damagedFiles), may fault in a goroutine of its own where
// its bbolt file is damaged (opening), may wait for ever for the lock of its directory
// (bolt_timeout), and reports the death of a background goroutine only to a callback (store.fail).
// The two tables of callbacks are global; registering guards them.
//
// # The parts
//
//   - engine.go: Engine, what the server runs. follower.go: what the index lacks, and its steps.
//   - store.go: bleve's files, their checksums and markers, and what bleve's goroutines report.
//   - document.go: what becomes of an entry. table.go, published.go: which rows the documents are,
//     for searches.
//   - search.go: questions, their order and places. suggest.go: other spellings.
package ranked
