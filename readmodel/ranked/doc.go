// Package ranked answers ranked search (httpapi/CONTRACT.md#ranked) from an index of bleve's on
// disk. An Engine keeps the index of a model, to which package indexing gives its life; a Searcher
// answers from what it has published and from a view. Start with follower.Follow, then
// Searcher.Search.
//
// # Promises
//
//   - Every entry of an answer is one of the view's, with its text of the view, and totals and
//     facets count those alone. An entry that has changed since the index's sequence is looked at,
//     and left out if it no longer has the words. So a delisted entry is never shown, whatever
//     the index still holds.
//   - An index that is of another stream, data set or version, ahead of the model, found damaged by
//     bleve, or hanging is removed and rebuilt. Meanwhile there is no index, and nothing else
//     notices.
//   - The process may die at any moment. The next one compares every document with the model, and
//     adds what the index lacks. If the process died while an index was being opened, that index is
//     rebuilt, so that files which kill the process do so once.
//   - Readers and imports do not wait for ranked search: see least.
//
// # The index
//
// A document is an entry; its id is the number of the list and the entry id. Three of its fields
// are scored: the terms (package terms) of the name, of the chat id (its digits packed, two in a
// byte) and of the reason. A fourth has the words as they were written (wordKey): there a question
// without diacritics finds the words that it means, and a misspelt one other spellings. What
// entries are filtered by is not in the index, since the view knows it. A document keeps the stream
// sequence of its entry's last change, so two numbers tell whether it is still true. Every batch
// has the state of the whole index (type state).
//
// For each segment a table in memory says which row each document was made from: 8 bytes a
// document. Segments do not change, so a table is made once. Opening an index reads every document:
// 0.12 s at 100,000 entries, and 2.1 to 2.6 s at 1,000,000 in a server that has just become ready.
// Files that kept the tables made that 0.01 and 0.5 s, with 420 lines.
//
// # The analysis
//
// terms.Version numbers the analysis of words, and format that of entries. An index with other
// numbers is rebuilt. Tests fail when an analysis changes and its number does not
// (events/CHANGING.md#the-analysis-of-ranked-search).
//
// # Why
//
// Answers come from bleve's postings, not from its searchers. Those cost 140 ns a hit and a word,
// fetch the id of each hit as a string, and cannot filter by what the view knows. Here the words'
// postings are united and intersected as bitmaps and filtered by row, and only what is left is
// scored.
//
// The formula is BM25 as Lucene has it, with k1 = 1.2 and b = 0.75. How often a word occurs and how
// long a text is on average are counted over documents that are not deleted. bleve's own count of
// lengths is of distinct terms by segment, and changes with merges.
//
// Most of the cost of an entry is in the dictionaries of document ids and chat ids, since each of
// these terms belongs to one entry. So the terms are packed, and merges are few: a large batch has
// 8192 entries, and eight segments of a size are merged at once.
//
// bleve merges segments in a goroutine of its own, without rests. The next merge waits until a rest
// has followed the last one (store.event).
//
// bleve keeps the words of a deleted document until it merges the document's segment, which may be
// never. So a segment that has any and is a day old is written again: the follower adds its other
// documents as if they had changed (overdue). That is less than bleve's ForceMerge does, and rests.
//
// Batches are "unsafe" to bleve: visible at once, on the disk within a tenth of a second. The index
// is a cache of the read model, so that a lost batch costs its work again and nothing else.
//
// Measured by BenchmarkRanked at a million entries, on two CPUs that others used now and then:
// 14 thousand entries a second, 67 µs of CPU time and 194 bytes on the disk each, 26 MiB of
// heap; a question of two words p50 2.4 ms, p99 19 ms, ten frequent words p99 16 ms. A suggestion
// took 10 ms, and 1000 changes a second a sixth of a CPU, before package terms had its
// lexicon.
// With every written word in the dictionary of words, rather than only those that are not their own
// term, the disk took 330 bytes an entry at 100,000 instead of 237.
//
// # bleve 2.6.0
//
// It is imported without its root package, which starts goroutines at import. What it does not do
// is done here: it may fault in a goroutine of its own where its bbolt file is damaged (opening), may
// wait forever for the lock of its directory (bolt_timeout), and reports the death of a background
// goroutine only to a callback (store.fail). It opens an index whose segments it cannot load as an
// empty one. It verifies no checksum: of 150 segments with one flipped bit it noticed 66 when it read
// them. A search over one of the others may miss entries; what it finds is always checked against
// the row. An operator who doubts the disk removes the directory.
//
// The two tables of callbacks are global; registering guards them.
//
// # The parts
//
//   - engine.go: Engine, what the server runs. follower.go: what the index lacks, and its steps.
//   - store.go: bleve's files, the mark of an opening, and what bleve's goroutines report.
//   - erase.go: which files have words of deleted documents for too long.
//   - document.go: what becomes of an entry. table.go, published.go: which rows the documents are,
//     for searches.
//   - search.go: questions, their order and places. suggest.go: other spellings.
package ranked
