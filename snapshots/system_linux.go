package snapshots

import (
	"fmt"
	"math"
	"os"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// initialMmap is the address space reserved for the map of a store, in bytes: enough for some forty
// million entries, or 1 GiB on 32-bit systems. It costs no memory. Before the map can move, bbolt
// waits until every read transaction has ended: with 1 GiB, nothing was saved in an import of a
// million while a snapshot was copied.
const initialMmap = min(64<<30, math.MaxInt/2)

// readAheadPiece is the length of one request to read ahead, in bytes. Linux reads no more for one
// call than the device's read-ahead, 128 KiB by default, and drops the rest without a word.
const readAheadPiece = 128 << 10

// readAhead asks the system to read the whole file into memory, since the order of the keys may not be
// that of the pages. It is only advice: errors do not matter.
func readAhead(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	for at := int64(0); at < info.Size(); at += readAheadPiece {
		_ = unix.Fadvise(int(f.Fd()), at, readAheadPiece, unix.FADV_WILLNEED)
	}
}

// adviseNormal takes back bbolt's advice that the map of db is read at random, with which each page that
// is not in memory is a read of its own. Without it the system notices by itself where reads are at
// random. 10,000,000 entries, a file of 13 GB, were loaded in 65 s instead of 288 on a machine of 23 GB,
// where file and model do not fit together.
func adviseNormal(db *bolt.DB, length int64) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, db.Info().Data, uintptr(length), unix.MADV_NORMAL)
}

// maxSpare bounds what checkSpace wants left over, in bytes.
const maxSpare = 16 << 20

// checkSpace returns an error when the disk of dir has no room for need bytes and some to spare,
// before anything is written.
func checkSpace(dir string, need int64) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return nil // writing will tell
	}
	spare := spareFor(uint64(need))
	all := uint64(need) + spare
	if free := uint64(disk.Bavail) * uint64(disk.Bsize); free < all {
		return fmt.Errorf("%w in %s: %d bytes must be free there (%d for the store, %d to spare), and %d are",
			unix.ENOSPC, dir, all, need, spare, free)
	}
	return nil
}

// spareFor is at most as much as the store again: what follows it, its packed form or pages that
// are rewritten, takes no more.
func spareFor(need uint64) uint64 { return min(need, maxSpare) }
