// Command registry is a public registry of scammers, scam servers and trusted persons: a read model
// of events that a moderation backend publishes into a JetStream stream.
//
//	registry serve [--demo]   broker, projector and HTTP in one process
//	registry publish FILE…    NDJSON events into the stream
//	registry snapshot …       create, list, verify, restore
//	registry export           a whole content as NDJSON events
//	registry rebuild          a new read model beside the one that is served
//	registry verify           compares the served one with a replay
//	registry rejected …       list, retry, purge
//	registry ready            for container health checks
//	registry version
//
// It is the only room that knows every other: it reads flags, binds addresses, opens and closes things
// in the right order, and translates what one room says of itself into what another asks for.
//
// # Promises
//
// Those of DESIGN.md that are kept here:
//
//   - 2 and 3: model, store, projector and index stand behind one pointer (generation, in live.go). A rebuild makes
//     another generation, lets it catch up, holds the old one still, brings the new one beside it, gives
//     its store the name in one rename, and moves the pointer. Only after an accepted stream that is another
//     one may the checkpoint be lower.
//   - 3: one process at a time owns a data directory. The lock is taken before anything in it is opened
//     and given back after everything in it is closed.
//   - 5: the listeners are bound first and answer from the start; nothing they do waits for the
//     broker or the disk.
//   - 7: until the projector says that it has caught up, State is not ready and every list, check and
//     donation is 503. The demonstration is published before the projector starts, so it is
//     caught up with as a whole.
//
// And of the program itself (API contract, program): exit status 0 after SIGTERM or SIGINT with everything
// saved, 2 for a usage error that names the flag, 1 otherwise with one line that says what to do. publish
// sends a file's good lines in order, names every bad one, and says how many were sent whatever happens.
//
// # Why this shape
//
// run takes the context, arguments, environment and streams as parameters: main is a signal and
// an exit status, and tests start the same program inside themselves. Each command is a struct whose
// fields are its flags, which kong fills; the alternative, the flag package, has neither commands nor
// environment variables, and its help is a list.
//
// On the way up: lock, listeners, broker, connection, saved state (of a snapshot where nothing is saved), projector. On the way down: no new
// requests, running ones end (10 s at most), the projector saves what it has applied, store, connection,
// broker, lock. Two goroutines carry this, web and project, so that requests are answered (with 503)
// while a large store is being loaded, and a projector still runs while requests drain. A chain of defers
// in one function cannot do that: it would stop the listeners last.
//
// Start reading with server.run in serve.go.
package main
