//go:build unix

package ranked

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what the process has taken of the processors so far.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
