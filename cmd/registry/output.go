package main

import (
	"errors"
	"os"
	"path/filepath"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/snapshots"
)

// replaceFile replaces the file at path in one step, once the output of write is synced to the disk. Errors
// name the flag.
func replaceFile(flag, path string, write func(*os.File) error) error {
	// A rename would put a file in the place of a device, a pipe or a link.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return cli.FileError(flag, path, errors.New("it exists and is no regular file"))
	}

	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return cli.FileError(flag, path, err)
	}
	defer func() {
		_ = f.Close()           // needed only after an error of write
		_ = os.Remove(f.Name()) // the file is there only after an error
	}()
	if err := write(f); err != nil {
		return err
	}

	// Only a file that is whole on the disk may take the place of the old one.
	err = errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = snapshots.RenameDurably(f.Name(), path)
	}
	if err != nil {
		return cli.FileError(flag, path, err)
	}
	return nil
}
