package snapshots

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// spare is what is left free on a disk that a snapshot is unpacked to, in bytes.
const spare = 16 << 20

// space refuses what cannot fit on the disk of dir, before anything is written.
func space(dir string, need int64) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return nil // writing will tell
	}
	if free := uint64(disk.Bavail) * uint64(disk.Bsize); free < uint64(need)+spare {
		return fmt.Errorf("%w: %d bytes are needed, %d are free", unix.ENOSPC, need, free)
	}
	return nil
}
