// Package readmodel holds the registry as its clients see it: the catalog of entries, indexed for
// every sort order and filter that a list supports, and the queries on it.
//
// A Renderer turns each event into a Record, once per change: rendered Markdown, folded text,
// collation key and public JSON. A Model applies records and publishes an immutable View behind an
// atomic pointer. Handlers load the newest View and answer from it. Start with Model.Apply, then
// View.List.
//
// # Promises of the whole
//
// The registry makes eight promises. They are stated here once; packages, comments and tests cite
// them by number, as in "promise 4 (readmodel/doc.go)".
//
//  1. The read model is a pure function of the greatest state of every subject (events.Compare)
//     among those that were read. Each event carries complete state and its revision, so applying
//     events twice, or in any order, changes nothing. No clock, I/O or map order matters.
//  2. A client sees one state: the data, total, hasMore, results and Registry-Sequence header of a
//     response belong together.
//  3. What is known never goes back. The checkpoint does only where the stream is not as it was read,
//     which is then read again, and in a data directory where an operator rebuilds.
//  4. A snapshot plus a replay of later events gives the same state as a replay from the start. The
//     digest proves it.
//  5. Queries do not wait for the stream, a disk, an index, an upstream or another query. The
//     one exception is a client that asks to wait, with Registry-Min-Sequence.
//  6. An exact search never lags. A block of the text index that is missing, or older than its rows,
//     makes it slower, never wrong.
//  7. Unknown is never clean: until the model has caught up, the response is 503, never an empty
//     200.
//  8. One bad event costs one event. Its reason, which a stranger wrote, renders within bounds of
//     time, memory and output (events/CONTRACT.md#mapping).
//
// # Promises
//
// This package keeps the first six as far as they concern memory:
//
//   - No result depends on a clock, I/O or map order (promise 1).
//   - A View never changes, and everything read from one View is consistent (promise 2).
//   - Only Model.Rewind sets the checkpoint of the published View back, and no state (promise 3).
//   - A store's records plus a replay give the Digest of a replay from the start (promise 4).
//   - A View has no lock. Only Model.Await blocks, and only its caller (promise 5).
//   - A search returns the same results whichever blocks are indexed (promise 6).
//
// # Rings
//
// The package has two rings:
//
//   - The content (content.go, catalog.go, tombstones.go): rows and view totals by list, in their
//     orders and by id, tombstones and donations. A store keeps it.
//   - The facets (facet.go) and the text index (blocks.go) are derived from the content and follow
//     each change inside Apply, so every view has them exactly. They are never stored or repaired.
//
// The index of ranked search may lag. It is outside, in a package that imports this one.
//
// # Why
//
// Sort order is maintained, not computed: each list has a counted tree (package btree) for each of
// three sort keys, so a page is one descent and a walk, and a total is one of the tree's counts.
// Sorting on each request takes 100 ms at 1,000,000 entries.
//
// Each entry is encoded once per change, so a page is a concatenation of prepared fragments.
// Marshaling thirty structs on each request costs a third of the throughput.
//
// View totals are stored next to the rows, by slot, in a copy-on-write slice (cowSlice): a new view
// total moves its entry in the orders by views and touches nothing else.
//
// Ranges of hashed chat ids are contiguous parts of the tree of chat ids, which is ordered by hash.
// Apply maintains a digest and a count for each range; the text of a range is built on request. The
// change feed (feed.go) is a tree of rows and tombstones ordered by sequence; Apply maintains its
// digest by hashing the old and the new text of a row, which saves storing the hashes.
//
// Entry ids, chat ids, donations and tombstones are looked up in trees of their hashes (idIndex,
// byID), because a map cannot be shared with a View without copying all of it. The digest does not
// cover tombstones: it covers what clients get.
//
// Names are sorted by the Polish collation of x/text, whose tables are from Unicode 6.2. So polish
// maps newer symbols to positions among the older ones; otherwise every name that starts with a
// newer emoji would sort after ż.
//
// Similar names are found by look-alike key (package lookalike), which the blocks of the text index have
// beside the names. The person check looks names up exactly, by their hashes (who.go).
//
// A text search computes a set: the slots of the rows whose text contains the needle. View.matching
// asks the blocks of the text index, and looks at every row that has changed since its block was made. The
// page is then sorted out of the set or found by walking the order, whichever is cheaper.
//
// # The parts
//
//   - record.go, render.go, row.go: from an event to a row. Package reason: its Markdown.
//   - model.go: Apply, and the view it publishes. content.go, catalog.go, tombstones.go: the
//     content.
//   - facet.go: the facets. who.go, chatids.go, ranges.go, feed.go: one each, with the queries that
//     it answers.
//   - view.go, list.go, check.go, similar.go, ranking.go: queries. search.go: text search in a view.
//   - blocks.go, indexer.go and package textblock: the text index.
//   - lookup.go, cowslice.go and package btree: the data structures that the owner shares with
//     views.
//   - rows.go: the places of rows. inventory.go: all content, for comparing two models.
//
// # Versions
//
// ProjectionVersion and RenderVersion tell which stored data a program can read. Tests fail if the
// data changes and its version does not.
package readmodel
