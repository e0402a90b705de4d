// Command registry is a public registry of scammers, scam servers and trusted persons: a read model
// of events that a moderation backend publishes into a JetStream stream.
//
//	registry serve [--demo]   broker, projector and HTTP in one process
//	registry publish FILE…    NDJSON events into the stream
//	registry export           the latest states as NDJSON events
//	registry snapshot …       create, list, verify, restore
//	registry recover          publishes what the stream has lost
//	registry rebuild          replaces the read model by a new one, made of the stream
//	registry verify           compares the read model with a replay of the stream
//	registry rejected, streams, keys, ready, version
//
// CONTRACT.md in this directory says what operators and their scripts may rely on: commands, flags,
// exit statuses, the data directory.
//
// Start reading with run in main.go, and go on with serve.Run in internal/serve. main only handles
// signals and the exit status. run gets the environment and the standard streams as parameters, so a test
// can run it in its own process. Each command is a struct; kong fills its fields from the flags.
//
//	main.go          main, run, exit statuses
//	serve.go …       one file for each command, with its flags
//	source.go        opens the file or snapshot that the commands read
//	output.go        files that are replaced in one step
//	internal/serve   the server: wiring, generations, rebuild, snapshots, metrics
//	internal/cli     what the commands share: flags, connections, advice, output
//	internal/demo    the demonstration's events
//	internal/task    goroutines with an owner that waits for them
//	registrytest     the harness that starts the program in tests
//	browser, cluster tests of the built program: in a real browser, and as several replicas
package main
