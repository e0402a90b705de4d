// Command registry is a public registry of scammers, scam servers and trusted persons: a read model
// of events that a moderation backend publishes into a JetStream stream.
//
//	registry serve [--demo]   broker, projector and HTTP in one process
//	registry publish FILE…    NDJSON events into the stream
//	registry snapshot …       create, list, verify, restore
//	registry export           the latest states as NDJSON events
//	registry rebuild          a new read model beside the one that is served
//	registry recover          publishes what the stream has lost
//	registry verify           compares the served one with a replay
//	registry rejected …       list
//	registry ready            for container health checks
//	registry version
//
// It is the only package that imports all others.
//
// # Promises
//
// CONTRACT.md in this directory says what operators and their scripts may rely on: commands, flags,
// exit statuses, the data directory. publish sends a file's good lines in order, names every bad
// one, and always reports how many were sent.
//
// # The parts
//
//	main.go          main, run, exit statuses
//	serve.go …       one file a command, with its flags; input.go reads the lines that publish sends
//	internal/serve   the server: wiring, generations, rebuild, snapshots, metrics
//	internal/cli     what the commands share: flags, connections, advice, output
//	internal/demo    the demonstration's events, and stand-ins for the services outside
//	internal/task    goroutines with an owner that waits for them
//	registrytest     the harness that starts the program in tests
//	browser, cluster tests of the built program with a real browser, and of several of them
//
// # Why this shape
//
// run takes the context, arguments, environment and streams as parameters: main only handles
// signals and the exit status, and tests run the same program in their own process. Each command is
// a struct whose fields are its flags, which kong fills. The alternative, the flag package, has
// neither commands nor environment variables, and its help is a list.
//
// Start reading with serve.Run in internal/serve.
package main
