package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/snapshots"
)

// replaceFile has write fill a new file. In one step, the new file then replaces the file that --output names.
// replaceFile returns the header that write returns.
func replaceFile(path string, write func(io.Writer) (snapshots.Header, error)) (h snapshots.Header, err error) {
	// The rename below would replace a device, a pipe or a link by a file.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return h, cli.FileError("--output", path, errors.New("it exists and is no regular file"))
	}

	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return h, cli.FileError("--output", path, err)
	}
	defer func() {
		_ = f.Close()           // it is still open only after an error of write
		_ = os.Remove(f.Name()) // it still has this name only after an error
	}()
	if h, err = write(f); err != nil {
		return h, err
	}

	// The old file is replaced only when the new one is whole on the disk.
	err = errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = snapshots.RenameDurably(f.Name(), path)
	}
	if err != nil {
		return h, cli.FileError("--output", path, err)
	}
	return h, nil
}
