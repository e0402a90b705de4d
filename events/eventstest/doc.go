// Package eventstest has what the tests of every room need of the events: a real embedded
// broker in two lines, a stream as the contract has it, publishing, and valid events, drawn
// by rapid or made in any number from a seed. No test in the project talks to a fake broker,
// but for the one answer of LonelyNode.
//
// # Why
//
// A broker takes 20 ms to start, so each test has its own, with its own directory and port,
// and tests may run side by side.
package eventstest
