// Package serve runs the registry in one process: broker, projector and HTTP. It opens and closes
// things in the right order, and connects the packages' interfaces.
//
// Start reading with Run and server.run in serve.go. Start: lock and listeners; then the broker and
// the connection to it, while the store is loaded; then the projector. Stop: no new requests, the
// running ones end (10 s at most), the projector saves what it has applied, then store, connection,
// broker and lock are closed. serveHTTP and project run concurrently, so that requests are answered
// (with 503) during the load of a large store, and a projector still runs while requests drain.
//
//	serve.go        start and stop
//	bootstrap.go    the starting point: the store, a snapshot, or nothing
//	broker.go       the embedded broker, or the connection to another
//	http.go         both listeners
//	live.go         the running generation, for responses and the operators' listener
//	generations.go  model, store, projector and indexes as one, reached through one pointer
//	rebuild.go      another generation, and the swap
//	snapshots.go    when snapshots are made, and exports
//	metrics.go      the metrics besides those of the packages
//	memory.go       the memory limit, and the share of it for answers
//	notify.go       readiness for systemd
package serve
