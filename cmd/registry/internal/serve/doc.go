// Package serve runs the registry in one process: broker, projector and HTTP. It opens and closes
// things in the right order, and translates what one package says of itself into what another asks
// for.
//
// # Promises
//
// Of those of the whole (readmodel/doc.go), these are kept here:
//
//   - Promises 2 and 3: model, store, projector and index stand in one struct, reached through one
//     pointer (generation). A rebuild makes another generation, lets it catch up, holds the old one
//     still, waits until the new one has caught up with it, gives its store the name in one rename,
//     and moves the pointer. Only where an accepted stream is another one may the checkpoint be
//     lower.
//   - Promise 3: one process at a time owns a data directory. The lock is taken before anything in
//     it is opened and released after everything in it is closed.
//   - Promise 5: the listeners are bound first and answer from the start; nothing they do waits for
//     the broker or the disk.
//   - Promise 7: until the projector has caught up, the server is not ready, and every list, check
//     and donation is 503. The demonstration is published before the projector starts, so all of it
//     is caught up with.
//
// # Why two goroutines
//
// On the way up: lock and listeners; then the broker and the connection to it, while the store is
// loaded; then the projector. An empty data directory waits for the broker, to get a snapshot. On the
// way down: no new requests, the running ones end (10 s at most), the
// projector saves what it has applied, then store, connection, broker and lock are closed.
// serveHTTP and project run side by side, so that requests are answered (with 503) while a large
// store is being loaded, and a projector still runs while requests drain. A chain of defers in one
// function cannot do that: it would stop the listeners last.
//
// # The parts
//
// Start reading with Run and server.run in serve.go.
//
//	serve.go        the way up and down
//	bootstrap.go    what to start from: the store, a snapshot, or nothing
//	broker.go       the embedded broker, or the connection to another
//	http.go         both listeners
//	live.go         what answers see of the running generation, and the operators' listener asks of it
//	generations.go  model, store, projector and indexes as one
//	rebuild.go      another generation, and the swap
//	snapshots.go    when snapshots are made, and which are kept
//	metrics.go      what /metrics has beside those of the packages
//	demand.go       whether readers and the stream want the CPUs
//	gc.go           the settings of the garbage collector
package serve
