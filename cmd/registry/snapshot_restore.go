package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"example.org/registry/snapshots"
)

// snapshotRestoreCmd makes a read model out of a snapshot.
type snapshotRestoreCmd struct {
	Snapshot string `arg:"" name:"NAME or FILE" help:"A file, if there is one of this name; else a snapshot in the object store."`
	DataDir  string `default:"data" placeholder:"DIR" help:"Data directory, which no process uses (default: data)."`
	Force    bool   `help:"Rename a read model that is there aside."`
	bucketFlags
}

// Run touches the data directory once there is a snapshot to restore: one that is missing, or none at all, makes
// no directory and no lock in it.
func (c *snapshotRestoreCmd) Run(p *process) error {
	return c.open(p, c.Snapshot, func(ctx context.Context, archive io.Reader) error {
		var head bytes.Buffer
		if _, err := snapshots.ReadManifest(bufio.NewReader(io.TeeReader(archive, &head))); err != nil {
			return unusable(c.Snapshot, err)
		}
		return c.restore(ctx, p.stdout, io.MultiReader(&head, archive))
	})
}

// restore takes the directory's lock, as a server would. When nothing is restored, nothing is left.
func (c *snapshotRestoreCmd) restore(ctx context.Context, stdout io.Writer, archive io.Reader) (err error) {
	serve := serveCmd{DataDir: c.DataDir}
	lock, err := snapshots.LockDir(c.DataDir)
	if err != nil {
		return lockError(err)
	}
	leave := lock.Undo
	defer func() { err = errors.Join(err, leave()) }()
	m, aside, err := snapshots.Restore(ctx, archive, snapshots.Restoring{Path: serve.storePath(), Replace: c.Force})
	if errors.Is(err, snapshots.ErrExists) {
		return fmt.Errorf("%w; --force renames it aside", err)
	}
	if err != nil {
		return fmt.Errorf("%w; the read model is as it was", unusable(c.Snapshot, err))
	}
	leave = lock.Unlock
	if aside != "" {
		fmt.Fprintf(stdout, "the old read model is now %s\n", aside)
	}
	_, err = fmt.Fprintf(stdout, "restored into %s: %s\n", c.DataDir, summary(m))
	return err
}
