// Package snapshots keeps the read model on disk: one bbolt file with every record and, in the same
// transaction, the checkpoint, the stream's identity and the digest that belong to them. From that
// file it makes archives, and stores from archives.
//
// Start with Open and Store.Save, then Store.Archive and Restore. Package bucket keeps archives in
// the broker.
//
// # Promises
//
//   - The checkpoint on disk never goes back (promise 3, readmodel/doc.go): Save refuses an older
//     one. Only NewReplacement, for a rebuild, starts again at zero. It uses a file of its own,
//     which Replace renames in one step, so that a crash leaves the old store or the new one.
//   - A snapshot plus a replay equals a replay from the start (promise 4): what Open loads has the
//     digest that was saved with it, or is not used at all.
//   - A store that does not load is no store: damaged, of another format or of another projection
//     version. It is renamed (registry.db.damaged-<UTC time>), and Open goes on as if there had been
//     none: with a snapshot if there is one, else empty, to be filled from the stream. One log line
//     names it.
//   - What is not damage (missing permission, a directory in the way, a file in use) is an error of
//     one line that says what to do. Nothing is renamed.
//   - Only callers of this package wait for it (promise 5): readers are served from memory.
//   - An archive holds one state of the store, however much is saved meanwhile. It has been
//     verified before anybody gets it.
//   - An archive from outside is not trusted. Unpack and Restore write it to a file of its own, no
//     longer than the manifest says, and use it only if checksum, records, counts and digest are
//     what the manifest says.
//   - A restore leaves the old store or the new one under the name, never none and never a part.
//
// # Tombstones
//
// A store has a table of tombstones for each list: which entries have left it, when, and nothing
// else. They let an export of an old snapshot leave out who was delisted since. The digest does not
// cover them; checksums and counts do.
//
// # Damage
//
// Only the stream is true. A store is derived from it, so damage is found but never repaired.
//
// bbolt has checksums on its two meta pages only. So each value here carries a CRC-32C of bucket,
// key and value, and so does the meta record. After loading, the digest and the counts are compared
// with those saved. Readers are served from memory, so what happens to the file later does not
// reach them.
//
// Code here that reads pages turns faults of the memory map into panics and panics into errors. But a
// page that is its own ancestor lets bbolt walk until memory runs out, which ends the process. So a
// mark (registry.db.loading) stands beside the store while it is loaded. If a start finds one left
// over, it does not load that store: it renames it to registry.db.damaged-while-loading. The store
// may be good, if the process was killed; that costs a restore. Only the newest such file is kept, so
// that a process that dies at each start does not fill the disk.
//
// How the pages belong together is not checked. A damaged free list can make a transaction overwrite
// a page in use. The next load finds that, or the transaction itself meets pages that do not fit:
// then Save returns ErrDamaged, and the server makes another store from the stream.
//
// # When the disk fails
//
// After a failed Save nothing in memory about the file is trusted. The next Save closes the file
// and opens it again (with a new descriptor, a new map, and the free list read again). It expects
// one of two states: the one before the failed transaction, or that transaction, kept although its
// failure was reported. Anything else is an error until a restart. Save then writes again all that
// it is given. A transaction writes every page that it uses, so nothing relies on pages whose fsync
// failed:
//
//   - If the fsync of the data pages failed, the old meta page is still in place, and earlier
//     transactions synced its pages. The retry writes its own pages again.
//   - If the fsync of the meta page failed, the file shows the new state, whose data pages are on
//     disk, but the disk may still hold an older meta page. If the power fails before two more
//     transactions have replaced both meta pages, the older one may lead to pages that have been
//     used again. Checksums and digest find that at the next start. The cost is time, never a wrong
//     answer.
//
// A full or read-only disk goes the same way, without the doubt, and works again when there is
// space.
//
// # Archives
//
// An archive is two lines of text, then the bbolt file in one zstd frame. The second line is the
// manifest, the first its checksum.
//
// The manifest is needed in front: it lets a restore refuse another stream, another version or a
// file that does not fit on the disk before it unpacks anything, and head -2 shows an operator what
// the file is. To write it first, the packed file has to be there, so archives are made in
// temporary files.
//
// The copy of the store comes from one read transaction, and is verified and packed after that has
// ended: while it lasts, the store cannot use pages again and grows. All this work rests between
// stretches (ArchiveConfig.Rest), because readers need the CPUs.
//
// Records are copied, not pages. bbolt leaves deleted values in its free pages, and a delisted entry
// must not be in later snapshots.
//
// # Deleted text
//
// EraseFree overwrites the free pages of the store's own file with zeros, in short write transactions
// that write nothing else. To replace the store by the copy that an archive has made took a second
// file of its size, and had to bring the copy up to date while saves wait.
//
// Each store has a random data-set id. By it, a store that opens its file again after a failed Save
// tells its own file from one that somebody put in its place. What is derived from a store and kept
// outside it can carry the id, and so notice a rebuild or a restore: both give the new store
// another one.
//
// # Why
//
// One file and one transaction, because then the checkpoint travels with the data by construction.
// The usual alternative, a log of our own with snapshots of it, would be a second stream beside
// JetStream. The stream is the durable truth already, and a crash costs a short replay.
//
// The free list is written with each transaction (bbolt's NoFreelistSync is off). To rebuild it at
// a start means to walk every page, in a goroutine of bbolt whose panic on a damaged file cannot be
// caught.
//
// A store of another format is not loaded, so there is no migration. A
// store and an archive of this format are in testdata, and a test opens them.
//
// # The parts
//
//	store.go     Save, and what becomes of a failed transaction
//	open.go      Open: load, verify, render again, or set aside
//	load.go      every record of a file, by several goroutines
//	format.go    tables, checksums and the meta record
//	file.go      bbolt files: open, create, rename
//	errors.go    faults, damage, and what to do about the rest
//	archive.go   Archive: copy, verify, pack; manifest.go is what stands in front of it
//	restore.go   Restore and Unpack
//	replace.go   the store of a rebuild, and files that were set aside
//	erase.go     what free pages hold
//	export.go    everything as events
//	lock.go      the lock of a data directory
package snapshots
