// Package mirror maintains a copy of a registry's lists in a file, from the feed of changes
// (httpapi/CONTRACT.md#changes). It only uses the public API, so it also proves that any client can
// do so.
//
// # Promises
//
//   - The file is complete: it is replaced in one step, and only by a copy whose counts and digest are
//     those that the server reported for the same sequence.
//   - If the process is killed, the next one continues from the file, whose position is in a small
//     state next to it. If the two do not fit each other, it fetches everything.
//   - Once the registry has responded, only two things end the mirror: an error of the disk, and a
//     copy that still differs after it was fetched again. It retries after all other errors.
//   - One process maintains a copy: the state is locked.
//
// # Why
//
// The copy is in memory, about 1 KB an entry, and on the disk only as the file that it is for. A
// database beside it costs the disk twice, and has to be cleared of removed entries and checked for
// damage.
//
// Replicas lag differently, so a copy is only compared once it has reached every sequence that any
// response has reported. Writing the file takes at most a tenth of the time: a file of a gigabyte
// is not written again for each change.
//
// mirror.go decides the next step, feed.go makes the requests, copy.go has the copy. Start with
// Run.
package mirror
