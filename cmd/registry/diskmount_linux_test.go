//go:build !race

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	sys "golang.org/x/sys/unix"
)

// disk is a file system of its own, in memory, that a test makes full.
type disk struct {
	dir   string // of the whole disk
	shown string // where one of its directories is shown
}

// newDisk mounts a disk of a size at dir, and shows one of its directories at path. Only root may
// do so; the error for others is [os.ErrPermission].
func newDisk(dir, path, size string) (*disk, error) {
	if err := sys.Mount("registry-test", dir, "tmpfs", 0, "size="+size); err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	d := &disk{dir, path}
	part := filepath.Join(dir, "part")
	err := errors.Join(os.MkdirAll(part, 0o700), os.MkdirAll(path, 0o700))
	if err == nil {
		err = sys.Mount(part, path, "", sys.MS_BIND, "")
	}
	if err != nil {
		return nil, errors.Join(err, sys.Unmount(dir, sys.MNT_DETACH))
	}
	return d, nil
}

// unmount removes the disk.
func (d *disk) unmount() error {
	return errors.Join(sys.Unmount(d.shown, sys.MNT_DETACH), sys.Unmount(d.dir, sys.MNT_DETACH))
}

func (d *disk) filler() string { return filepath.Join(d.dir, "filler") }

// fill leaves room for some bytes, or none.
func (d *disk) fill(room int64) error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err = f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if !errors.Is(err, sys.ENOSPC) {
		return fmt.Errorf("fill the disk: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return f.Truncate(info.Size() - room)
}

// free takes away the filler.
func (d *disk) free() error { return os.Remove(d.filler()) }
