package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	bolterrors "go.etcd.io/bbolt/errors"
)

// damage marks an error as a fault of the file, so that the file may be renamed aside.
type damage struct{ error }

func (d damage) Unwrap() error { return d.error }

// classify marks err as damage unless it comes from the system or from another program's lock.
func classify(err error) error {
	var number syscall.Errno
	if err == nil || errors.As(err, &number) || errors.Is(err, bolterrors.ErrTimeout) || errors.As(err, &damage{}) {
		return err
	}
	return damage{err}
}

// storeError returns err for an operator, with the remedy in the same line.
func storeError(err error) error { return fmt.Errorf("store: %w; %s", err, remedy(err)) }

// remedy returns an operator's remedy for an error of the store's file or of the data directory.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EISDIR):
		return "move that directory away, or choose another data directory with --data-dir"
	case errors.Is(err, syscall.ENOTDIR):
		return "choose a directory with --data-dir"
	case errors.Is(err, fs.ErrPermission):
		return "make it readable and writable for this user, or choose another data directory with --data-dir"
	case errors.Is(err, fs.ErrNotExist):
		return "make that directory, or choose another with --data-dir"
	case errors.Is(err, bolterrors.ErrTimeout):
		return "close the other program that has the file open"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make space on the disk"
	case errors.Is(err, syscall.ENOMEM):
		return "lift the limit on the address space of this process (ulimit -v, LimitAS)"
	case errors.Is(err, syscall.EROFS):
		return "make the disk writable, or choose a data directory on another disk with --data-dir"
	}
	return "check the disk, or move the file away: a new one is filled from the stream"
}
