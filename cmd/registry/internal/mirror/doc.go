// Package mirror maintains a copy of a registry's lists in a file, from the feed of changes
// (httpapi/CONTRACT.md#changes). It only uses the public API, so it also proves that any client can
// do so.
//
// # Promises
//
//   - The file is complete: it is replaced in one step, and only by a copy whose counts and digest are
//     those that the server reported for the same sequence.
//   - Fetched changes are saved in a store next to the file, with their position. If the process is
//     killed, the next one continues from there.
//   - Once the registry has responded, only two things end the mirror: an error of the disk, and a
//     copy that still differs after it was fetched again. It retries after all other errors.
//   - One process maintains a copy: the store is locked.
//
// # Why
//
// The store is bbolt, with one transaction for up to 16 MiB of pages: it holds the entries in the
// order of the file, and a position that always fits them. Memory does not grow with the number of
// entries.
//
// Replicas lag differently, so a copy is only compared once it has reached every sequence that any
// response has reported. Writing the file takes at most a tenth of the time: a file of a gigabyte
// is not written again for each change.
//
// mirror.go decides the next step, feed.go makes the requests, copy.go has the store. Start with
// Run.
package mirror
