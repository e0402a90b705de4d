// Package snapshots keeps the latest state of each subject on disk, as one line: the event that sets
// it, as registry export writes it. Everything else is derived from the lines.
//
//   - A store is one bbolt file of the lines and of a meta record: the stream's identity, the
//     checkpoint, the last messages read and the digest. Each transaction writes both.
//   - A snapshot is the same lines as text, between a first line that describes them and a last one with
//     their count and digest. Exports, snapshots and the sources of recover are this format.
//   - A bucket holds packed snapshots in the broker's object store.
//
// Start with Open, which compares the digest of the loaded states with the saved one, so that a damaged
// store is never served. Nothing is repaired: the stream or a snapshot replaces the file. A snapshot from
// elsewhere is not trusted: Read checks bounds, order, count and digest, and bbolt opens no file from
// outside.
//
//	store.go     Store: Open, Save, Each
//	load.go      the model of a store
//	file.go      the files of a store
//	lines.go     Unpack, ReadLines: text that may be packed
//	snapshot.go  Write, Read: the format
//	restore.go   Restore, Bootstrap: a store of a snapshot
//	bucket.go    Bucket
//	lock.go      LockDir
package snapshots
