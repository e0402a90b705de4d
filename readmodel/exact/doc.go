// Package exact keeps the text index of a read model, with which a search of a list, or a check of
// a name, finds a text in milliseconds the first time that it is asked for. It is a
// readmodel.TextIndex made of blocks of package textindex; package indexing gives it its life.
// Start with Engine.Run, then builder.Follow.
//
// # Promises
//
//   - The index never misses a row that has not changed since its sequence, and what it is sure of
//     matches (promise 6, readmodel/doc.go).
//   - What cannot be written costs searches a look at the rows that the index lacks, and nothing
//     else.
//   - A process leaves nothing behind: the files have no name.
//
// # How it follows
//
// A block covers 16 384 slots and is built from the rows alone. A change only marks its row, and
// searches look at marked rows themselves. There are two sizes of block because a mark is not free:
// without small blocks, 512 marked rows made a search for rare text ten times as slow. So every 32
// changed rows of a part get a small block, and after 1 024 the large one is built again. Nothing
// is merged or deleted, and a change costs the indexing of some 30 rows, later.
//
// The words of all blocks are numbered by one Vocabulary, which only grows. When it has doubled,
// half of it may be words of texts that are gone: another one is begun, and every block built
// again, while the old ones answer.
//
// # Why
//
// The index is made anew at each start. Until that is done a search looks at the rows that it
// lacks. To save it for the next process took 550 lines, which had to decide the row numbers of
// entries while they were loaded. Measured on two processors, from the start of the process until
// searches that nobody asked before take 30 ms at most: 7.1 s at 1 000 000 entries with a saved
// index, and 9.3 s without; at 100 000, 0.7 to 1.2 s and 0.8 to 1.8 s. The server itself was ready
// sooner without it, after 5.6 s in place of 6.7. While readers want the processors the index takes
// a quarter of them: then it is there after 12 to 15 s at 1 000 000, and searches get faster with
// every block. While the store is loaded 1.7 of the two processors are in use, so that an index
// made then would have delayed what readers wait for.
//
// # The parts
//
//   - engine.go: Engine, what the server runs.
//   - builder.go: builder, which marks what has changed and builds blocks of it.
//   - index.go: index, what searches ask.
package exact
