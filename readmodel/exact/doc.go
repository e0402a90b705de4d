// Package exact maintains the text index of a read model. With it a search of a list, or a check of
// a name, takes milliseconds even the first time. The index is a readmodel.TextIndex made of blocks
// of package textindex; package indexing drives it. Start with Engine.Run, then builder.Follow.
//
// # Promises
//
//   - The index never misses a row that has not changed since its sequence, and every row that it
//     reports as sure matches (promise 6, readmodel/doc.go).
//   - If a block cannot be written, searches scan its rows. Nothing else suffers.
//   - A process leaves no files behind: each is removed as soon as it is mapped.
//
// # How it follows
//
// A block covers 16,384 slots and is built from the rows alone. A change only marks its row, and
// searches scan marked rows. A part with 32 of them gets a new block once nothing changes for a
// moment, and else when there are 2,048. Nothing is merged or deleted. Small blocks of the marked
// rows alone made searches beside 1,000 changes a second 0.5 ms faster, with 120 lines.
//
// One Vocabulary numbers the words of all blocks. It only grows. Once it has doubled, half of it
// may be words of deleted texts. The builder then starts a new one and rebuilds every block;
// searches use the old blocks until then.
//
// # Why
//
// The index is not saved: each start rebuilds it, and until it is complete searches scan the rows
// that it lacks. A saved one made new searches fast two seconds sooner at 1,000,000 entries, in 550
// lines.
//
// While the server is busy the index takes an eighth of the CPUs. Searches get faster with every
// block. The index is not built during a load of the store: loading uses 1.7 of two CPUs, and
// clients wait for it.
//
// # The parts
//
//   - engine.go: Engine, what the server runs.
//   - builder.go: builder, which marks changes and builds blocks.
//   - index.go: index, which searches query.
package exact
