package snapshots

import (
	"errors"
	"io/fs"
	"syscall"

	bolterrors "go.etcd.io/bbolt/errors"
)

// remedy is what an operator can do about an error of Open or LockDir, to follow it in the same line.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EISDIR):
		return "; move that directory away, or choose another data directory with --data-dir"
	case errors.Is(err, syscall.ENOTDIR):
		return "; choose a directory with --data-dir"
	case errors.Is(err, fs.ErrPermission):
		return "; make it readable and writable for this user, or choose another data directory with --data-dir"
	case errors.Is(err, fs.ErrNotExist):
		return "; make that directory, or choose another with --data-dir"
	case errors.Is(err, bolterrors.ErrTimeout):
		return "; close the other program that has the file open"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "; make space on the disk"
	case errors.Is(err, syscall.EROFS):
		return "; make the disk writable, or choose a data directory on another with --data-dir"
	}
	return "; see to the disk, or move the file away: the stream fills a new one"
}
