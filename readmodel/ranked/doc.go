// Package ranked answers ranked search (httpapi/CONTRACT.md#ranked) from an index of bleve on disk.
// An Engine maintains the index of a model, driven by package indexing; a Searcher answers from the
// published index and a view. Start with builder.Follow, then Searcher.Search.
//
// # Promises
//
//   - Every entry of a result is an entry of the view, with the view's text, and totals and facets
//     count only these. If an entry has changed since the index's view, the search reads it, and
//     omits it if it no longer has the words. So a delisted entry is never shown, whatever the index
//     still holds.
//   - An index of another stream, data set or version, an index ahead of the model, and one that
//     bleve finds damaged or that hangs is removed and rebuilt. Until then there is no index, and
//     nothing else is affected.
//   - The process may die at any moment. The next one compares every document with the model, and
//     adds missing ones. If the process died while an index was being opened, that index is rebuilt,
//     so files that kill the process do so only once.
//   - Clients and imports do not wait for ranked search.
//
// # The index
//
// A document is an entry; its id is the number of the list and the entry id. It has three scored
// fields: the terms (package terms) of the name, of the chat id and of the reason. A fourth field has
// the words as written (wordKey). There a query without diacritics finds the words that it can mean,
// and a misspelled one finds other spellings. The index has no filters, since the view has them. A
// document stores the stream sequence of its entry's last change, so comparing two numbers tells
// whether it is current. Every batch stores the state of the whole index (type state).
//
// For each segment a table in memory has the row and the lengths of each document: 16 bytes a
// document. Segments do not change, so a table is made once. Opening an index reads every document:
// 0.1 s at 100,000 entries.
//
// # The analysis
//
// terms.Version numbers the analysis of words, and format that of entries. An index with other
// numbers is rebuilt. Tests fail if an analysis changes and its number does not.
//
// # Why
//
// Results come from bleve's postings, not from its searchers: those take 3 to 40 times as long at
// 1,000,000 entries, and their BM25 counts rarity twice. Totals and facets would be the index's, not the
// view's.
//
// The formula is BM25 as in Lucene, with k1 = 1.2 and b = 0.75. Word frequencies and the average
// length of texts are counted over documents that are not deleted.
//
// Merges are few, since they rewrite every dictionary: a large batch has 8192 entries, and eight
// segments of a size are merged at once. A document is made of maps, as bleve wants it: reusing their
// memory took 40% less CPU time an entry, with 230 lines.
//
// bleve merges segments in its own goroutine, without rests. Each merge waits until a rest has
// followed the one before (store.event).
//
// bleve retains the words of a deleted document until it merges the document's segment, which may
// be never. So a segment with deleted documents that is a day old is rewritten: the builder adds
// its other documents as if they had changed (overdue). That is less work than bleve's ForceMerge,
// and it rests.
//
// Batches are "unsafe" to bleve: visible at once, on the disk within a tenth of a second. The index
// is a cache of the read model, so a lost batch only costs its work again.
//
// The dictionary of words holds only words that differ from their own term, which is a third of the
// disk less.
//
// # bleve 2.6.0
//
// It is imported without its root package, which starts goroutines at import. This package works
// around its limits. bleve may fault in its own goroutine if its bbolt file is damaged (opening),
// may wait forever for the lock of its directory (bolt_timeout), and reports the death of a
// background goroutine only to a callback (store.fail). It opens an index whose segments it cannot
// load as an empty one. It verifies no checksum, so a search over a damaged segment may miss entries;
// each hit is checked against the row. An operator who doubts the disk removes the directory.
//
// bleve's two tables of callbacks are global; registering guards them.
//
// # The parts
//
//   - engine.go: Engine, what the server runs. builder.go: the index's missing changes, and its
//     steps.
//   - store.go: bleve's files, the mark of an opening, and the errors of bleve's goroutines.
//   - erase.go: files that have had words of deleted documents for too long.
//   - document.go: from an entry to a document. table.go, published.go: the row of each document, for
//     searches.
//   - search.go: queries, their order and matches. suggest.go: other spellings.
package ranked
