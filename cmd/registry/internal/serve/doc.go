// Package serve runs the registry in one process: broker, projector and HTTP. It opens and closes
// things in the right order, and connects the packages' interfaces.
//
// # Promises
//
// Of the promises in readmodel/doc.go, these are kept here:
//
//   - Promises 2 and 3: model, store, projector and index are in one struct, reached through one
//     pointer (generation). A rebuild makes another generation, lets it catch up, pauses the old one,
//     waits until the new one has caught up with it, gives its store the name in one rename, and
//     moves the pointer. The new generation first gets what only the old one knows.
//   - Promise 3: one process at a time owns a data directory. The lock is taken before anything in
//     it is opened and released after everything in it is closed.
//   - Promise 5: the listeners are bound first and respond from the start; they never wait for the
//     broker or the disk.
//   - Promise 7: until the projector has caught up, the server is not ready, and every list, check
//     and donation is 503. The demonstration is published before the projector starts, so the
//     projector catches up with all of it.
//
// # Why two goroutines
//
// Start: lock and listeners; then the broker and the connection to it, while the store is loaded;
// then the projector. An empty data directory waits for the broker, to get a snapshot. Stop: no new
// requests, the running ones end (10 s at most), the projector saves what it has applied, then
// store, connection, broker and lock are closed. serveHTTP and project run concurrently, so that
// requests are answered (with 503) during the load of a large store, and a projector still runs
// while requests drain. A chain of defers in one function cannot do that: it would stop the
// listeners last.
//
// # The parts
//
// Start reading with Run and server.run in serve.go.
//
//	serve.go        start and stop
//	bootstrap.go    the starting point: the store, a snapshot, or nothing
//	broker.go       the embedded broker, or the connection to another
//	http.go         both listeners
//	live.go         the running generation, for responses and the operators' listener
//	generations.go  model, store, projector and indexes as one
//	rebuild.go      another generation, and the swap
//	snapshots.go    when snapshots are made, and which are kept
//	metrics.go      the metrics besides those of the packages
//	demand.go       whether clients and the stream need the CPUs
//	memory.go       the memory limit, and the share of it for answers
//	notify.go       readiness for systemd
package serve
