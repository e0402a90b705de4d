//go:build unix

package wire

import "syscall"

// descriptorLimit returns how many files and connections the process may have open; the runtime has
// raised the soft limit to the hard one at start.
func descriptorLimit() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1024 // the usual soft limit
	}
	return uint64(l.Cur)
}
