package snapshots

import (
	"os"

	"golang.org/x/sys/unix"
)

// readPiece is how much is asked for at once, in bytes: Linux takes no more of a call than the device's read-ahead
// is, and drops the rest without a word. 128 KiB is its default.
const readPiece = 128 << 10

// readAhead asks the system to bring the whole file into memory. bbolt maps it with the advice that
// it is read at random, so without this a cold start reads page by page.
// It is advice: errors do not matter.
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
	for at := int64(0); at < info.Size(); at += readPiece {
		_ = unix.Fadvise(int(f.Fd()), at, readPiece, unix.FADV_WILLNEED)
	}
}
