//go:build unix && !linux

package registrytest

import "os"

// Disk is for Linux alone.
type Disk struct{}

// MountDisk returns [os.ErrPermission].
func MountDisk(string, string, string) (*Disk, error) { return nil, os.ErrPermission }

// Unmount does nothing.
func (*Disk) Unmount() error { return nil }

// Fill does nothing.
func (*Disk) Fill(int64) error { return nil }

// Free does nothing.
func (*Disk) Free() error { return nil }
