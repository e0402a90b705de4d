// Package eventstest has the helpers for events that the tests of every package need: a real
// embedded broker in two lines, the stream of the contract, publishing, and valid events, drawn by
// rapid or generated in any number from a seed. No test of the project uses a fake broker, apart
// from the one reply of LonelyNode.
//
// # Why
//
// A broker takes 20 ms to start, so each test has its own, with its own directory and port, and
// tests may run in parallel.
package eventstest
