// Package demo provides the data of registry serve --demo: about 2,000 invented entries.
//
// # Promises
//
//   - Events are the same on every machine and in every run of one day. An import that was
//     interrupted anywhere is repeated, with the same result as an uninterrupted one. On another day
//     all are published again, so that no report is older than the page about the registry allows.
//   - No chat id can ever belong to a person: each is above 2⁶⁴.
//   - Only a stream with the demonstration's mark is published into.
//
// # Why published
//
// The entries go through the stream like any others, so the demonstration shows the real path:
// publisher, broker, projector. Loading them into the read model directly would save a second and
// demonstrate nothing.
package demo
