// Package publish sends events to the stream that carries them, and says how that stream and the
// one of rejected events are configured. A Go backend publishes single events with a Publisher, and
// many with a Run.
//
// # Promises
//
//   - A Publisher validates before it sends, so the registry does not reject what it has sent.
//   - After a Run, whether it is the first or a repetition, and whether or not an earlier one was
//     interrupted, the stream's last message of each subject is at least as new as the run's last
//     of that subject.
//
// # Why
//
// A Run sends atomic batches because the broker then syncs to disk once a batch, ten times as fast
// as once a message. Sending single messages without waiting for each answer does not change the
// number of syncs; it remains the way out when the broker refuses a batch, which it does when it
// knows one of the messages.
//
// Single messages go through the asynchronous publishing of nats.go, with bounds of the Publisher's
// own. A window of 84 lines in its place published 36,700 known events a second instead of 34,100
// (medians of five, within the noise, with fewer allocations); neither limits anything, since the
// goal is 20,000 into a broker that syncs.
//
// A Run remembers the highest sequence of each subject because the broker's table of duplicates is
// not enough: see order.
//
// It is a package of its own so that the events, the read model and the HTTP API do not import a
// NATS client.
package publish
