package textindex

import "golang.org/x/sys/unix"

// populate loads the pages of a new block. Otherwise the first searches would wait for each page.
// Before Linux 5.14 it has no effect.
func populate(data []byte) { _ = unix.Madvise(data, unix.MADV_POPULATE_READ) }
