// Package exact keeps the text index of a read model. With it a search of a list, or a check of a
// name, takes milliseconds even the first time. The index is a readmodel.TextIndex made of blocks
// of package textindex; package indexing gives it its life. Start with Engine.Run, then
// builder.Follow.
//
// # Promises
//
//   - The index never misses a row that has not changed since its sequence, and what it is sure of
//     matches (promise 6, readmodel/doc.go).
//   - If a block cannot be written, searches look at its rows themselves. Nothing else suffers.
//   - A process leaves no files behind: each is removed as soon as it is mapped.
//
// # How it follows
//
// A block covers 16,384 slots and is built from the rows alone. A change only marks its row, and
// searches look at marked rows themselves. There are two sizes of block because a mark is not free:
// without small blocks, 512 marked rows made a search for rare text ten times as slow. So every 32
// changed rows of a part get a small block, and after 1,024 the large one is built again. Nothing
// is merged or deleted, and a change costs the indexing of about 30 rows, later.
//
// One Vocabulary numbers the words of all blocks. It only grows. Once it has doubled, half of it
// may be words of texts that are gone: the builder begins another, and builds every block again
// while the old ones answer.
//
// # Why
//
// The index is not saved: each start builds it again, and until it is complete searches look at the
// rows that it lacks. Saving it took 550 lines, which had to decide the row numbers of entries
// while they were loaded, and bought little. On two CPUs, from the start of the process until
// new searches take 30 ms at most, it took 7.1 s with a saved index and 9.3 s without at 1,000,000
// entries; 0.7 to 1.2 s and 0.8 to 1.8 s at 100,000. The server itself was ready sooner without it:
// after 5.6 s instead of 6.7.
//
// While the server is busy the index takes an eighth of the CPUs. Searches get faster with
// every block. It is not built while the store is loaded: loading uses 1.7 of two CPUs, and
// readers wait for it.
//
// # The parts
//
//   - engine.go: Engine, what the server runs.
//   - builder.go: builder, which marks what has changed and builds blocks of it.
//   - index.go: index, what searches ask.
package exact
