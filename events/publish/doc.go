// Package publish sends events to their stream, and has the configuration of that stream and the
// one of rejected events.
//
// # Promises
//
//   - A Publisher validates before it sends, so the registry does not reject its events.
//   - After PublishAll, whether it is the first time or a repetition, and whether or not an earlier one
//     was interrupted, the stream has a state of each subject at least as great as the greatest given.
//   - PublishAll sends nothing that is not greater than the stream's last state of its subject.
//
// # Why
//
// PublishAll sends atomic batches because the broker then syncs to disk once a batch, ten times as fast
// as once a message. If the broker refuses a batch, which it does if it knows one of the messages, they
// are sent singly by the asynchronous publishing of nats.go, with the Publisher's own bounds.
//
// PublishAll asks for the last messages of a batch's subjects in one request (multi_last, a direct get),
// also where the stream was empty: not asking there was a quarter faster, with a state that lasted over
// calls. The broker's table of duplicates knows ids for two minutes, not states, so an id that it knows
// is checked in the stream.
//
// It is a package of its own so that the events, the read model and the HTTP API do not import a
// NATS client.
package publish
