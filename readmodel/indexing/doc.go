// Package indexing runs the indexes of a read model: it opens them, drives their updates, and
// replaces them when they fail. An index makes searches fast, follows the model in a goroutine that
// no other waits for, and may lag (promise 6, readmodel/doc.go). There are two: exact search
// (package exact) and ranked search (package ranked). This package has what they share.
//
// # Adding a third index
//
// Write a type that implements Index and a function that opens it, and run a Runner with that
// function:
//
//	k := indexing.Runner{
//		Name:    "index of reports",
//		Failing: "The index of reports cannot be written, so charts are slow",
//		Open:    func(ctx context.Context, w *indexing.Work) (indexing.Index, error) { return open(dir, model) },
//		Pacer:   pacer,
//	}
//	k.Run(ctx, model)
//
// Follow receives the newest view and brings the index closer to it, one step of at most about 100
// ms of work at a time. It reads the model only through views:
//
//   - View.Rows iterates over all rows; View.Row returns the row at a RowRef. A RowRef names a slot,
//     which may hold a different row later.
//   - View.ChangedSince returns the slots that have changed since a version. If the model no longer
//     knows, scan every row, as on the first run: Row.Content distinguishes a row from a later one
//     of the same entry.
//   - View.SameModel reports whether two views, and so their slots, belong to one model.
//
// Follow publishes the index for searches as an immutable value behind an atomic pointer. A search
// also checks the rows that have changed since, so a lagging index makes it slower, never wrong.
//
// While it works, Follow must call Work.Tick often: Tick sleeps if others need the CPUs, and shows
// that the step is not stuck. The result of Follow says when to call it again. An error becomes the
// sentence in Problem and a line in the log; Runner.SetAside decides what happens next. An
// in-memory index that merely failed to write (exact search) leaves SetAside nil: it stays in use,
// and Follow is called again. An index on disk (ranked search) may be damaged: it is closed,
// removed and rebuilt.
//
// Finally, start the index in newGeneration and index of package serve, and add its sequence and
// trouble to /projection and /metrics there.
//
// # Promises
//
//   - Only the caller of Run waits for an index. A panic or a memory fault in a step is an error.
//   - A step without progress is reported in Problem. If SetAside is set, the step is abandoned and a
//     new index replaces the old one; nothing that the old one does later has any effect.
//   - Indexes together take an eighth of the CPUs while the server is busy.
//
// # Why
//
// A Pacer limits CPU use by wall-clock time, not by the CPU time that the system accounts: if
// others keep the CPUs busy, an index gets less than its share. Measuring the CPU use of the rest of
// the process as well took 250 more lines for the same list throughput during indexing.
//
// # The parts
//
//   - runner.go: Runner, its Index, and the Work of a step.
//   - pacer.go: Pacer.
package indexing
