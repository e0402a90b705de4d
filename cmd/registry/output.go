package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/snapshots"
)

// replaceFile replaces the file at path, of --output, in one step, once the states that write writes are synced
// to the disk. It returns their header.
func replaceFile(path string, write func(io.Writer) (snapshots.Header, error)) (h snapshots.Header, err error) {
	// A rename would put a file in the place of a device, a pipe or a link.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return h, cli.FileError("--output", path, errors.New("it exists and is no regular file"))
	}

	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return h, cli.FileError("--output", path, err)
	}
	defer func() {
		_ = f.Close()           // needed only after an error of write
		_ = os.Remove(f.Name()) // the file is there only after an error
	}()
	if h, err = write(f); err != nil {
		return h, err
	}

	// Only a file that is whole on the disk may take the place of the old one.
	err = errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = snapshots.RenameDurably(f.Name(), path)
	}
	if err != nil {
		return h, cli.FileError("--output", path, err)
	}
	return h, nil
}
