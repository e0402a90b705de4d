// Package snapshots stores the read model on disk: one bbolt file with every record and, in the
// same transaction, the checkpoint, the stream's identity and the digest of the content. It makes
// archives of that file, and restores stores from archives.
//
// Start with Open and Store.Save, then Store.Archive and Restore. Package bucket stores archives in
// the broker.
//
// # Promises
//
//   - NewReplacement, for a rebuild, uses a file of its own, which Replace renames in one step, so
//     that a crash leaves the old store or the new one.
//   - What a directory has held is not forgotten with its store: a file beside it (registry.known) has
//     the checkpoint and the number of subjects of the last complete state. Store.Owed says when the
//     store that was opened is not complete, or has fewer. Only an operator's restore lowers it.
//   - A snapshot plus a replay equals a replay from the start (promise 4): the content that Open loads
//     has the digest that was saved with it, or is not used at all.
//   - A store that does not load is no store: damaged, of another format or of another projection
//     version. It is renamed (registry.db.damaged-<UTC time>), and Open continues as if there had been
//     none: with a snapshot if there is one, else with an empty store that is filled from the stream.
//     One log line names it.
//   - Other problems (missing permission, a directory in the way, a file in use) are errors of one
//     line with the remedy. Nothing is renamed.
//   - Only callers of this package wait for it (promise 5): clients are served from memory.
//   - An archive holds one state of the store, however much is saved while it is made. It is verified
//     before it is handed out.
//   - An archive from outside is not trusted. One loop reads it, with bounds for the length of a
//     record, the number of records and their sum; every record is decoded, and what was read is
//     used only if order, checksums, counts and digest match the manifest. bbolt opens no file from
//     outside.
//   - A restore leaves the old store or the new one under the name, never none and never a part.
//
// # Tombstones
//
// A store has a table of tombstones for each list: which entries were delisted, when, and nothing
// else. With them, an export of an old snapshot can omit entries delisted since. The digest does
// not cover tombstones; checksums and counts do.
//
// # Damage
//
// Only the stream is true. A store is derived from it, so damage is found but never repaired.
//
// bbolt has checksums only on its two meta pages. So each value here carries a CRC-32C of bucket,
// key and value, and so does the meta record. After loading, the digest and the counts are compared
// with the saved ones. Clients are served from memory, so later damage to the file does not reach
// them.
//
// Code here that reads pages turns faults of the memory map into panics and panics into errors. But
// if a page is its own ancestor, bbolt walks until memory runs out, which ends the process. So a
// mark (registry.db.loading) stands next to the store during a load. If a start finds a leftover
// mark, it does not load the store, but renames it to registry.db.damaged-while-loading. The store
// may be good, if the process was killed; that costs a restore. Only the newest such file is kept,
// so that a process that dies at each start does not fill the disk.
//
// The structure of the pages is not checked. A damaged free list can make a transaction overwrite a
// page in use. The next load finds that, or the transaction itself reads inconsistent pages: then
// Save returns ErrDamaged, and the server makes another store from the stream.
//
// # When the disk fails
//
// After a failed Save, the file's state in memory is not trusted. The next Save closes the file and
// opens it again (with a new descriptor, a new map, and the free list read again). It expects one
// of two states: the one before the failed transaction, or that of the transaction itself, stored
// although its failure was reported. Anything else is an error until a restart. Save then writes
// everything that it is given again. A transaction writes every page that it uses, so nothing
// relies on pages whose fsync failed:
//
//   - If the fsync of the data pages failed, the old meta page is still in place, and earlier
//     transactions synced its pages. The retry writes its own pages again.
//   - If the fsync of the meta page failed, the file shows the new state, whose data pages are on
//     disk, but the disk may still hold an older meta page. If the power fails before two more
//     transactions have replaced both meta pages, the older one may lead to pages that have been
//     used again. Checksums and digest find that at the next start. The cost is time, never a wrong
//     answer.
//
// A full or read-only disk is handled in the same way, without that risk. The store works again
// once there is space.
//
// # Archives
//
// An archive is one zstd frame of a stream of records. Two lines of text precede them: a magic word,
// and the manifest, which says what the archive is. So a restore can refuse another stream, another
// version or a content that does not fit on the disk before it reads more, and zstdcat with head -2
// shows an operator what the file is. The records are those of the store, in the order of a load:
// table, key, and value with its checksum. A restore puts them into a new bbolt file. The
// alternative, the store's own file in a frame, needed a second copy of the store on the disk to
// make an archive, and a file of unknown origin to be opened to read one.
//
// The records come from one read transaction, and are read back and verified after that has ended:
// during the transaction, the store cannot reuse pages and grows. All this work rests between
// stretches (ArchiveConfig.Rest), because queries need the CPUs.
//
// Free pages are not part of it. bbolt leaves deleted values in them, and a delisted entry must not
// be in later snapshots.
//
// # Deleted text
//
// EraseFree overwrites the free pages of the store's own file with zeros, in short write
// transactions that write nothing else. The alternative, replacing the store by a copy, takes a
// second file of its size, and has to update the copy while saves wait.
//
// Each store has a random data-set id. After a failed Save, a store that opens its file again
// recognizes its own file by the id. Data that is derived from a store and kept outside it can
// carry the id to detect a rebuild or a restore: both give the new store another id.
//
// # Why
//
// The store is one file and uses one transaction, so that the checkpoint and the data belong
// together by construction. The usual alternative, a log of our own with snapshots of it, would be
// a second stream next to JetStream. The stream is the durable truth already, and a crash costs a
// short replay.
//
// The free list is written with each transaction (bbolt's NoFreelistSync is off). Rebuilding it at
// a start means walking every page, in a goroutine of bbolt whose panic on a damaged file cannot be
// caught.
//
// A store of another format is not loaded, so there is no migration.
//
// # The parts
//
//	store.go     Save, and the handling of a failed transaction
//	open.go      Open: load, verify, render again, or rename aside
//	load.go      every record of a store or an archive, by several goroutines
//	format.go    tables, checksums and the meta record
//	file.go      bbolt files: open, create, rename
//	errors.go    faults, damage, and remedies for other errors
//	archive.go   Archive: write and verify one; manifest.go is its header
//	reader.go    Reader: the states of an archive
//	restore.go   Restore: a new store of an archive's records
//	replace.go   the store of a rebuild, and files that were renamed aside
//	erase.go     the content of free pages
//	export.go    an archive as events
//	known.go     what the directory has held
//	lock.go      the lock of a data directory
package snapshots
