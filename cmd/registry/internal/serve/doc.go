// Package serve runs the registry in one process: broker, projector and HTTP. It opens and closes
// things in the right order, and connects the packages' interfaces.
//
// Start reading with Run and server.run in serve.go. At a start, the server takes the lock and binds the
// listeners, starts the broker and connects to it while the store is loaded, and then starts the
// projector. At a stop, it takes no new requests, lets the running ones end (10 s at most), has the
// projector save all applied events, and closes connection, broker, store and lock. serveHTTP and project
// run concurrently, so that requests are answered (with 503) while a large store is loaded, and a
// projector still runs while requests drain.
//
//	flags.go        Flags, and the names in the data directory
//	serve.go        Run: start and stop
//	bootstrap.go    loader: the store, one made of a snapshot, or an empty one
//	broker.go       link: the embedded broker, or the connection to another
//	generations.go  generation: model, store, projector and index, reached through one pointer
//	live.go         live: the generation that is served, for responses and the operators' listener
//	rebuild.go      another generation, and the swap
//	http.go         both listeners
//	announce.go     "ready", with the addresses
//	snapshots.go    snapshotter: when snapshots are made, and exports
//	metrics.go      the metrics that no other package has
//	memory.go       the memory limit, and the share of it for answers
//	notify.go       readiness for systemd
package serve
