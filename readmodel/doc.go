// Package readmodel is the registry as readers see it: the catalogue of entries, kept in every
// order and under every filter that a list can be asked for, and the queries on it.
//
// A Renderer makes a Record of each event, once per change: Markdown, folded text, collation key
// and public JSON. A Model applies records and publishes an immutable View behind one atomic
// pointer. Handlers load the newest View and answer from it. Start with Model.Apply, then
// View.List.
//
// # Promises of the whole
//
// The registry makes eight promises. They are stated here once; packages, comments and tests name
// them by number, as in "promise 4 (readmodel/doc.go)".
//
//  1. The read model is a pure function of the last valid event of every subject, among the
//     messages that the stream still has. Events carry whole states, so applying an event twice, or
//     events of different subjects in another order, changes nothing. No clock, no I/O and no map
//     order takes part.
//  2. A reader sees one state: data, total, hasMore, results and the Registry-Sequence header of
//     one answer belong together.
//  3. The checkpoint never goes back while a process lives. In a data directory it goes back only
//     when an operator rebuilds.
//  4. A snapshot plus a replay of what came after it gives what a replay from the start gives. The
//     digest proves it.
//  5. Queries wait for nothing: not for the stream, a disk, the text index, an upstream or another
//     query. The one exception is a caller who asks to wait, with Registry-Min-Sequence.
//  6. The text index may lag; an answer may not. An index that lags, is damaged, hangs or is
//     missing makes searches slower and never wrong; so does a cache of results.
//  7. Unknown is never clean: until the model has caught up the answer is 503, never an empty 200.
//  8. One bad event costs one event. Its reason, which a stranger wrote, renders within bounds of
//     time, memory and output (events/CONTRACT.md#mapping).
//
// # Promises
//
// This package keeps the first six as far as they concern memory:
//
//   - Nothing here reads a clock, does I/O or depends on the order of a map to decide an answer
//     (promise 1).
//   - A View never changes, and everything read from one View belongs together (promise 2).
//   - The checkpoint of the published View never goes back (promise 3).
//   - A store's records plus a replay give the Digest of a replay from the start (promise 4).
//   - A View has no lock. Only Model.Await waits, and only its caller (promise 5).
//   - A search answers the same with an index, with one that lags, and without (promise 6).
//
// # Bounds of a rendered reason
//
// They are those of events/CONTRACT.md#mapping, in markdown.go:
//
//   - Depth of lists and quotes: maxNesting, and that depth times the lines: maxNestedLines.
//   - What link references repeat: as many bytes as the reason has.
//   - Runs of *, _ and ~: maxDelimiters. Closing brackets that end no link: maxUnlinked.
//   - HTML: maxHTML, and MaxReasonHTML for any reason.
//
// # Why
//
// Order is kept, not computed. Each list has a counted tree (package btree) for each of three sort
// keys. A tree counts its items by what the filters ask of an entry, so any page is one descent and
// a walk, and a total is a tree's count. The alternatives lost: sorting at each request costs 100 ms
// at a million entries, and sorted slices rebuilt at each batch cost the writer as much. A tree for
// each combination of filters as well held an entry in about ten trees, which is what most of the
// memory that an import allocates went into. An amendment that does not move an entry touches no
// tree.
//
// An entry is encoded once per change, so that a page is ready fragments joined. Marshalling thirty
// structs at each request costs a third of the throughput.
//
// View totals are kept beside the rows, by slot, in a slice that is copied on write (cowSlice). A
// counted view moves its entry in the orders by views and touches nothing else.
//
// How many entries were reported in each month is counted as rows come and go (monthCounts), so
// that a chart of them costs a lookup a month. A scan for it would look at every row at each
// change.
//
// Ranges of hashed chat ids are stretches of the tree of chat ids, which is ordered by their hash,
// and Apply keeps a digest and a count of each: 96 KB in all. Their text is made when it is asked
// for, so nothing is kept for an entry.
//
// The feed of changes (feed.go) is one tree of rows and tombstones by sequence: 16 to 28 bytes of
// each, in a tree that grows at its end. Its digest is kept by Apply, which hashes the old and the
// new text of a row: to keep the hashes would cost 16 bytes an entry more.
//
// Entry ids, chat ids and donations are found through trees of their hashes (idIndex). A map cannot
// be shared with a view unless it is copied whole. Donations used a second tree, tidwall/btree, for
// that alone.
//
// Tombstones are found like donations (byID). One takes up to 104 bytes for an id of 24 characters
// and 128 for a UUID, the feed included (TestTombstoneMemory). They are no part of the digest: it
// says what readers get.
//
// Names sort by the Polish collation of x/text. Its tables are of Unicode 6.2, so polish maps newer
// symbols among the old ones; else every name that starts with a newer emoji would come after ż.
//
// Similar names are found by their look-alike keys (package lookalike). A row keeps those that
// differ from its folded name, 18 bytes an entry, and a tree of grams of the keys tells which rows
// to compare (similarIndex). At 300 000 entries that tree has 3.2 items, 51 bytes, an
// entry; at a million it takes 0.6 s of a start's processor time. A change of name or verification costs a batch 30 µs more at a million
// entries; other changes cost nothing. To compare every row would take 10 ms at 100 000 entries and
// 160 at a million.
//
// A check of a name looks for similar names first. All whose name is equal are among those, so where
// they fill a group the index is only asked who has such an id. Then it ranks what the index finds,
// and keeps nothing: to bring a result up to date takes as long. One that nobody asked for takes
// 0.02 ms of processor time at 100 000 entries and 0.08 at a million; of a word, which many names
// hold, 0.7 (BenchmarkCheck). Rows are looked at in steps, many at a time, since the time is that of
// memory (ranking): one after the other took three times as long.
//
// A text search computes a set: the slots of the rows whose text contains the needle. View.matching
// makes it from a cached result or from what the index finds, and in both cases looks at every row
// that has changed since; without either it looks at every row. The page is then sorted out of the
// set, or found by walking the order, whichever is cheaper. A cached result is brought up to date
// when it is asked for again. To do that for hundreds of results at every event would cost the
// writer more than it saves readers.
//
// # Indexes
//
// Two indexes make searches fast, and both may lag: that of exact search (package exact, of blocks
// of package textindex) and that of ranked search (package ranked, of bleve's). None of their life
// is here. This package holds what they see of a model (rows.go, changes.go), what a search asks of
// a TextIndex (search.go), and what a ranked search is (ranking.go). Package indexing says what an
// index is, what both have in common, and how to add a third.
//
// # The parts
//
//   - record.go, render.go, markdown.go, row.go: what becomes of an event; tombstones.go: of a
//     delisting.
//   - model.go, catalogue.go, lookup.go, months.go, ranges.go: the writer's side. cowslice.go and
//     package btree are what it shares with views.
//   - view.go, list.go, check.go, similar.go, ranking.go: what readers ask. feed.go: what has
//     changed. search.go: the texts in a view, and their cache.
//   - rows.go, changes.go: what an index sees. inventory.go: everything, to compare two models.
//
// # Versions
//
// ProjectionVersion and RenderVersion say what a program can read of what another one wrote. Tests
// fail when something changes and its version does not. events/CHANGING.md#versions has the table of
// these and the other versions; the page also explains how to add a field, a parameter, a list or an
// endpoint.
package readmodel
