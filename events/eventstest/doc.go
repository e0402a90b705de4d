// Package eventstest has the helpers for events that the tests of every package need. A real broker takes
// 20 ms to start, so each test starts its own, with its own directory and port, and tests may run in parallel.
//
// Start with Broker, Connect, Stream and Publish.
//
//	broker.go    a broker, connections, the stream, publishing
//	events.go    valid events: any number from a seed, or drawn by rapid
//	twin.go      Twin, a naive read model
//	corpus.go    messages that break the contract
//	relay.go     Relay, a network that fails
//	switches.go  nightly runs, seeds, ports, waiting, leaked goroutines
//	log.go       Log, a log that a test reads
package eventstest
