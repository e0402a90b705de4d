// Package demo is what registry serve --demo shows: about 2,000 invented entries, and stand-ins for
// the services outside.
//
// # Promises
//
//   - Events are the same on every machine and in every run. An import that ended anywhere is
//     repeated, and leaves the last states of an uninterrupted one.
//   - No chat id can ever belong to anybody: each is above 2⁶⁴.
//   - Only a stream that carries the demonstration's mark is published into.
//
// # Why published
//
// The entries go through the stream like anybody's, so the demonstration shows the real path:
// publisher, broker, projector. Loading them into the read model directly would be faster by a
// second and show nothing.
package demo
