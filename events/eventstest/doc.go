// Package eventstest has what the tests of every room need of the events: a real embedded broker in
// two lines, the stream of the contract, publishing, and valid events, drawn by rapid or generated
// in any number from a seed. No test of the project talks to a fake broker, apart from the one
// answer of LonelyNode.
//
// # Why
//
// A broker takes 20 ms to start, so each test has its own, with its own directory and port, and
// tests may run side by side.
package eventstest
