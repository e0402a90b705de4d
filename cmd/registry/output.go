package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"example.org/registry/cmd/registry/internal/cli"
)

// toFile reports whether an --output names a file, and not standard output.
func toFile(output string) bool { return output != "" && output != "-" }

// errNotRegular is the error for a device, a pipe or a socket, which a rename would replace by a
// file.
var errNotRegular = errors.New("it exists and is no regular file")

// replaceable returns why path cannot be replaced by a rename, or nil. A rename does not follow a
// symbolic link, so only a regular file, or none, may be there.
func replaceable(flag, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return cli.Unwritable(flag, path, err)
	case info.IsDir():
		return cli.Unwritable(flag, path, syscall.EISDIR)
	case !info.Mode().IsRegular():
		return cli.Unwritable(flag, path, errNotRegular)
	}
	return nil
}

// replaceFile replaces path in one step by the output of write, synced.
func replaceFile(flag, path string, write func(*os.File) error) error {
	if err := replaceable(flag, path); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return cli.Unwritable(flag, path, err)
	}
	defer func() {
		_ = f.Close()           // after an error, or a second time
		_ = os.Remove(f.Name()) // after an error
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(f.Name(), path), syncDir(filepath.Dir(path))); err != nil {
		return cli.Unwritable(flag, path, err)
	}
	return nil
}

// syncDir makes a rename in a directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	defer d.Close()
	return d.Sync()
}
