// Package indexing gives an index its life. An index makes searches of a read model fast, follows
// the model in a goroutine that nobody waits for, and may lag (promise 6, readmodel/doc.go). There
// are two kinds: exact search (package exact) and ranked search (package ranked). What they have in
// common is here, once.
//
// # A third index
//
// Write a type with the methods of Index, and a function that opens it. Run a Keeper with that
// function:
//
//	k := indexing.Keeper{
//		Name:    "index of reports",
//		Failing: "The index of reports cannot be written, so charts are slow",
//		Open:    func(ctx context.Context, w *indexing.Work) (indexing.Index, error) { return open(dir, model) },
//		Pacer:   pacer,
//	}
//	k.Run(ctx, model)
//
// Follow gets the newest view and brings the index closer to it: a step at a time, each of about 100
// ms of work at most. It reads the model through views alone:
//
//   - View.Rows has every row, View.Row the one in a place. A RowRef names a place, which another
//     row may take later.
//   - View.ChangedSince has the places that have changed since a sequence. Where that is no longer
//     known, every row has to be looked at, as at the beginning: Row.Sequence tells a row from a
//     later one of the same entry.
//   - View.SameModel tells whether two views, and so their places, are of one model.
//
// It publishes what it has where searches find it: as an immutable value behind one atomic pointer.
// A search then looks at the rows that have changed since, so that an index that lags makes it
// slower and never wrong.
//
// While it works, Follow calls Work.Tick often: that rests where others want the CPUs, and
// shows that nothing hangs. What it returns says when to call it again. An error is a sentence of
// Trouble and a line of the log; what then depends on Keeper.SetAside. An index in memory that only
// could not be written (exact search) has none: it stays in use, and Follow is called again. An
// index of files (ranked search) may be damaged: it is closed, removed and rebuilt.
//
// Last, start it in newGeneration and index of package serve, and add its sequence and trouble to
// /projection and /metrics there.
//
// # Promises
//
//   - Only Run's caller waits for an index. A panic or a fault of memory in a step is an error.
//   - A step that shows no progress is a trouble. Where there is SetAside it is left to itself, and
//     a new index takes the place of the old; nothing that the old one does later counts.
//   - Indexes together take an eighth of the CPUs while the server is busy.
//
// # Why
//
// A Pacer is a rate limiter of CPU time as it passes, not as the system counts it: where
// others hold the CPUs an index takes less than its share. Its caller says when the server is
// busy, by requests and changes a second. To measure what the rest of the process takes of the CPUs
// as well, and to interrupt bleve's merges for rests, took 250 lines more, for the same throughput
// of lists while an index is made.
//
// # The parts
//
//   - keeper.go: Keeper, its Index and the Work of a step.
//   - pacer.go: Pacer.
package indexing
