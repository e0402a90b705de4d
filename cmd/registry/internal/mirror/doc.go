// Package mirror keeps a copy of a registry's lists in a file, by the feed of changes
// (httpapi/CONTRACT.md#changes). It knows the public API alone, so it is also the proof that a
// client can.
//
// # Promises
//
//   - The file is whole: it is replaced in one step, only by a copy whose counts and digest are
//     those that the server gave for the same sequence.
//   - What has arrived is kept in a store beside the file, with the position up to which it has. A
//     process that is killed goes on from there.
//   - Once the registry has answered, only two things end the mirror: an error of the disk, and a
//     copy that still differs after it was fetched again. All else is waited out.
//   - One process keeps a copy: the store is locked.
//
// # Why
//
// The store is bbolt, one transaction for up to 16 MiB of pages: it keeps the entries in the order
// of the file, and a position that always fits them. Memory does not grow with
// the number of entries.
//
// Replicas lag differently, so a copy is compared only where it has come as far as everything that
// any answer has named. The file is written for at most a tenth of the time: one of a gigabyte is
// not written again for each change.
//
// mirror.go decides what is next, feed.go asks, copy.go keeps. Start with Run.
package mirror
