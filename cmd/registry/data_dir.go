package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"example.org/registry/snapshots"
)

func (c *serveCmd) dataDir() string {
	switch {
	case c.DataDir != "":
		return c.DataDir
	case c.Demo:
		return "data-demo"
	}
	return "data"
}

// lockError says what to do about a data directory that another process has. Other errors say it themselves.
func lockError(err error) error {
	if errors.Is(err, snapshots.ErrLocked) {
		return fmt.Errorf("%w; stop that one, or choose another directory with --data-dir", err)
	}
	return err
}

// storePath, indexDir, brokerDir and temporaryDir divide the data directory.
func (c *serveCmd) storePath() string { return filepath.Join(c.dataDir(), "registry.db") }
func (c *serveCmd) indexDir() string  { return filepath.Join(c.dataDir(), "index") }
func (c *serveCmd) brokerDir() string { return filepath.Join(c.dataDir(), "broker") }

// temporaryDir is for files that mean nothing after a crash: it is emptied at each start.
func (c *serveCmd) temporaryDir() string { return filepath.Join(c.dataDir(), "temporary") }
