// Package readmodel is the registry as readers see it: the catalogue of entries, kept in every
// order and under every filter that a list can be asked for, and the queries on it.
//
// A Renderer makes a Record of each event: Markdown, folded text, collation key and public JSON,
// once per change. A Model applies records and publishes an immutable View behind one atomic
// pointer; handlers take the View of the moment and answer from it. Start with Model.Apply, then
// View.List.
//
// # Promises
//
// The numbers are those that tests name.
//
//  1. The read model is a pure function of the last valid event of every subject. Nothing here
//     reads a clock, does I/O or depends on the order of a map: applying an event twice, or events
//     of different subjects in another interleaving, changes nothing.
//  2. A reader sees one state: everything read from one View belongs together.
//  3. The checkpoint of the published view never goes back while a process lives.
//  4. A store's records plus a replay give what a replay from the start gives; Digest proves it.
//  5. Queries wait for nothing: a View has no lock. Only Await waits, and only who asks.
//  6. The index may be behind, gone or unreadable, results remembered or forgotten: an answer is the same.
//
// # Why this shape
//
// Order is kept, not computed: for each list, three sort keys times three status times three
// proofs filters make 27 counted copy-on-write B-trees, of which an entry is in about ten. Any page
// is a descent to its first row and a walk, and a total is the count of a tree. Sorting at each
// request costs 100 ms at a million entries; sorted slices rebuilt at each batch cost the writer as
// much.
//
// The B-tree is our own (tree.go). We began with tidwall/btree, whose items have to be, or point
// to, what its comparator reads. An item here is a sort key and a slot number, without a pointer:
// the comparator is the owner's, and a walk by position needs none. At 300 000 entries that took a
// collection from 380 ms to 45 ms of processor time, a tree from 33 to 18 bytes an item after a
// load, and the sorting at a start from 0.89 s to 0.62 s. An amendment that does not move an entry
// touches no tree at all.
//
// An entry is encoded once per change, so that a page is a concatenation of ready fragments;
// marshalling thirty structures at each request costs a third of the throughput.
//
// View totals lie outside the rows, in pages copied on write by the row's slot: a counted view
// moves its entry in the orders by views and touches nothing else.
//
// Chat ids are found through such a tree over their hashes instead of a map: a map cannot be shared
// with a view without copying it whole.
//
// Similar names are found by their look-alike keys (package lookalike), of which the rows keep what is
// not their folded name: 18 bytes an entry. A third such tree, over grams of those keys, tells which
// rows to ask (likes.go). At 300 000 entries it has 3.2 items, 66 bytes, an entry and takes 0.35 s of a start;
// a change of name or verification costs a batch 30 µs more at a million entries, any other nothing. A
// search takes 0.15 ms at 100 000 entries and 1.3 ms at a million where asking every row takes 10
// and 160 ms, with names of which a third recur a thousand times.
//
// A text search is a set: the slots whose text contains what is searched for. View.matching makes it
// from what is remembered or what the index finds, plus what has changed since, or from a look at
// every row; then the page is sorted out of the set, or found by walking the order, whichever is
// cheaper. Results are remembered by bytes and brought up to date when they are asked for again,
// by a look at the entries of the change log alone: keeping hundreds of them true at every event
// would cost the writer more than it saves readers.
//
// The index (package gramindex) is blocks of 16 384 slots, made of the rows alone. A change only marks
// its slot, which searches then look at beside what the block finds. The rows of more than 32 marks get a
// small block of their own, made anew with each 32 more; at 1 024 rows the large one is made anew. So there
// is nothing to merge or delete, and a change costs the indexing of some 30 rows, later. The Indexer
// rests in between, so that it takes a quarter of the processors at most. Without the small blocks, 512 marks
// a block cost a search for rare text ten times what it costs while nothing changes.
//
// It is made anew at each start, in a goroutine that nobody waits for. Keeping it over a restart would
// need slots that stay, checksums, and the stream's identity beside it, to save what is less than what the
// start itself takes: at 100 000 entries making it costs as much as forty looks at every entry.
package readmodel
