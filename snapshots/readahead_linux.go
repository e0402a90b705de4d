package snapshots

import (
	"os"

	"golang.org/x/sys/unix"
)

// readAhead asks the system to bring the whole file into memory. bbolt maps it with the advice that
// it is read at random, so without this a cold start reads page by page.
// It is advice: errors do not matter.
func readAhead(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_WILLNEED)
}
