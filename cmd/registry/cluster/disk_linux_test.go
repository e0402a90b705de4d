//go:build !race

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	sys "golang.org/x/sys/unix"
)

// diskSize is of the living replica's disk: its store twice, an archive and the index fit many
// times.
const diskSize = "256m"

// disk is a file system of its own, for the living replica's data directory, that can be filled.
type disk struct{ path string }

// mountDisk mounts one below path, in memory. It is nil where that is not allowed: only root may.
func mountDisk(path string) (*disk, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	err := sys.Mount("registry-soak", path, "tmpfs", 0, "size="+diskSize)
	if errors.Is(err, sys.EPERM) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	return &disk{path}, nil
}

func (d *disk) unmount() error { return sys.Unmount(d.path, sys.MNT_DETACH) }

func (d *disk) filler() string { return filepath.Join(d.path, "filler") }

// fill leaves no room at all, for now.
func (d *disk) fill() error {
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
	return nil
}

// free gives the room back.
func (d *disk) free() error { return os.Remove(d.filler()) }
