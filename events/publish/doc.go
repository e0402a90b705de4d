// Package publish sends events to their stream, and has the configuration of that stream and the
// one of rejected events. A Go backend publishes single events with a Publisher, and many with a
// Run.
//
// # Promises
//
//   - A Publisher validates before it sends, so the registry does not reject its events.
//   - After a Run, whether it is the first or a repetition, and whether or not an earlier one was
//     interrupted, the stream has a state of each subject at least as great as the run's greatest.
//   - A Run sends nothing that is not greater than the stream's last state of its subject.
//
// # Why
//
// A Run sends atomic batches because the broker then syncs to disk once a batch, ten times as fast
// as once a message. Sending single messages without waiting for each acknowledgment does not
// change the number of syncs. It is the fallback if the broker refuses a batch, which it does if it
// knows one of the messages.
//
// Single messages go through the asynchronous publishing of nats.go, with the Publisher's own
// bounds. A window of our own, 84 lines, published 36,700 known events a second instead of 34,100
// (medians of five, within the noise, with fewer allocations). Neither is a bottleneck, since the
// goal is 20,000 into a broker that syncs.
//
// A Run asks for the last messages of a batch's subjects in one request (multi_last, a direct get). It
// asks nothing where the stream was empty, so an import costs what sending does. The broker's table of
// duplicates knows ids for two minutes, not states, so an id that it knows is checked in the stream.
//
// It is a package of its own so that the events, the read model and the HTTP API do not import a
// NATS client.
package publish
