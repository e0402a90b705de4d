// Package snapshots keeps the read model on disk: one bbolt file with every record, and in the
// same transaction the checkpoint, the stream's identity and the digest they belong to.
//
// # Promises
//
//   - The checkpoint on disk never goes back (DESIGN.md, promise 3): Save refuses an older one.
//     Only Begin, an operator's rebuild, starts again at zero, in a file of its own, and Replace gives
//     it the name in one step: whoever dies on the way leaves the old store or the new one.
//   - Snapshot plus replay equals replay from the start (promise 4): what Open loads has the
//     digest that was saved with it, or is not used at all.
//   - A store that is damaged, of another format or of another projection version is renamed
//     beside itself (registry.db.damaged-<UTC time>), never deleted and never overwritten, named
//     in one log line, and an empty store takes its place. The stream fills it again.
//   - What is no damage (no permission, a directory in the way, an input/output error, a file
//     in use) is an error of one line that says what to do, and nothing is renamed.
//   - Nobody waits for this package but its callers: readers are served from memory.
//   - An archive is one state of the store, however much is saved meanwhile, and has been proved before
//     anybody gets it. What Unpack, Restore and ExportFile are given by others is not trusted: it is written beside,
//     no longer than its manifest says, and used when its checksum, every record, the counts, the digest
//     and the pages have been found to be what the manifest says.
//   - A restore leaves the old store or the new one under the name, never neither and never a part.
//
// # How damage is found
//
// bbolt puts checksums on its two meta pages only. So every value carries a CRC-32C over
// bucket, key and value, the meta record one of its own, and after loading the digest and the
// counts are compared with those saved. The length that the meta page asks for is compared with the
// length of the file before anything behind it is touched: reading past the end of a mapped file
// kills the process. Everything that reads pages runs with faults turned into panics and panics
// into errors. When all records are good, bbolt's own check goes over the page structure, so that
// a damaged free list cannot make a later transaction overwrite a live page. Not covered: damage
// that makes a branch page its own ancestor is walked for ever; bbolt cannot detect it, it takes one
// particular bit of a page number, and the remedy is to move the file away by hand.
//
// # When the disk fails
//
// After a failed Save nothing in memory about the file is trusted: the next Save closes it and opens
// it anew (a new descriptor, a new map, the free list read again), and looks which of the two states
// it finds: the one before the failed transaction, or that transaction, kept although its failure was
// reported. Anything else is an error for good. It then writes everything it was given again; a
// transaction writes every page it uses, so nothing relies on pages whose fsync failed:
//
//   - The fsync of the data pages failed: the old meta page is still in place, and its pages were
//     synced by earlier transactions. The retry writes its own pages anew.
//   - The fsync of the meta page failed: the file shows the new state, whose data pages
//     are on disk, but the disk may still hold an older meta page. If the power goes before two
//     more transactions have replaced both meta pages, the older one may point to pages
//     since reused. The checksums and the digest find that at the next start, the file is set
//     aside, and the stream is replayed. The cost is time, never a wrong answer.
//
// A full or read-only disk is the same path without the doubt, and heals when there is space again.
//
// # Archives
//
// Two lines of text, the second of which is the manifest and the first its checksum, then the bbolt file in one
// zstd frame. The manifest comes first, so that a reader knows how much to expect before it unpacks
// anything; to write it first the packed file has to be there, so archives are made in temporary files.
// A copy of the store is made from one read transaction and proved and packed after that has ended: such a
// transaction keeps pages from being used again. All of it rests between stretches of work
// (Work.Rest), because readers need the processors.
//
// Records are copied, not pages: bbolt leaves in its free pages what was deleted, and somebody who was taken
// off the lists is not in a snapshot that is made afterwards.
//
// # Why
//
// One file and one transaction, because the position then travels with the data by construction.
// A log of its own with snapshots, the usual alternative, would be a second stream beside
// JetStream; the stream is the durable truth already, and a crash costs a little replay.
//
// The free list is written with each transaction (bbolt's NoFreelistSync is off): rebuilding it at
// start means walking every page, and bbolt does that walk in a goroutine whose panic on a damaged file
// cannot be caught.
package snapshots
