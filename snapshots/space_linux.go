package snapshots

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mostSpare bounds what is left free on a disk that a store is written to, in bytes.
const mostSpare = 16 << 20

// space refuses what cannot fit on the disk of dir, before anything is written.
func space(dir string, need int64) error {
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

// spareFor is as much as the store again: what follows it (its packed form, pages that are written anew) takes no more.
func spareFor(need uint64) uint64 { return min(need, mostSpare) }
