package textindex

import "golang.org/x/sys/unix"

// populate has the system bring the pages of a new block in: else the first searches wait for each.
// It may not be able to (before Linux 5.14), which costs them that.
func populate(data []byte) { _ = unix.Madvise(data, unix.MADV_POPULATE_READ) }
