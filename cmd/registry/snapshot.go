package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/serve"
	"example.org/registry/events/natserr"
	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

// snapshotCmd manages snapshots.
type snapshotCmd struct {
	Create  snapshotCreateCmd  `cmd:"" help:"Ask a running server for a snapshot at its checkpoint, into the object store or a file."`
	List    snapshotListCmd    `cmd:"" help:"Show the snapshots in the object store, the newest first."`
	Verify  snapshotVerifyCmd  `cmd:"" help:"Check the digest, checksums and structure of a snapshot. Touches no data directory."`
	Restore snapshotRestoreCmd `cmd:"" help:"Restore a snapshot into a data directory that is not in use. Does not touch the broker's store."`
}

// snapshotCreateCmd makes a running server create a snapshot.
type snapshotCreateCmd struct {
	Output string `placeholder:"FILE" help:"Write the snapshot to this file instead of the object store. The file exists only once it is complete. -: standard output."`
	cli.AdminFlags
}

// Run prints what was created.
func (c *snapshotCreateCmd) Run(p *process) error {
	switch {
	case c.Output == "-":
		return cli.Interrupted(p.ctx, copyAnswer(p, c.AdminFlags, http.MethodPost, "/snapshots?output=1", p.stdout)) // its checksum reveals a truncated one
	case c.Output != "":
		return cli.Interrupted(p.ctx, c.create(p))
	}
	var made serve.Created
	if err := c.AskJSON(p.ctx, http.MethodPost, "/snapshots", &made); err != nil {
		return cli.Interrupted(p.ctx, err)
	}
	_, err := fmt.Fprintf(p.stdout, "%s: %s, %d bytes\n", cli.Printable(made.Name), summary(made.Manifest), made.Bytes)
	return err
}

// summary returns a snapshot's description.
func summary(m snapshots.Manifest) string {
	return fmt.Sprintf("stream %s, sequence %d, %d entries, digest %s", cli.Printable(m.Stream), m.Sequence, m.EntryCount(), m.Digest)
}

// create writes a temporary file next to FILE and renames it at the end.
func (c *snapshotCreateCmd) create(p *process) error {
	var m snapshots.Manifest
	var n int64
	err := replaceFile("--output", c.Output, func(f *os.File) (err error) {
		m, n, err = takeArchive(p, c.AdminFlags, f)
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %s, %d bytes\n", cli.Printable(c.Output), summary(m), n)
	return err
}

// takeArchive makes the running server create a snapshot of n bytes and writes it to f.
func takeArchive(p *process, server cli.AdminFlags, f *os.File) (m snapshots.Manifest, n int64, err error) {
	archive, err := server.Ask(p.ctx, http.MethodPost, "/snapshots?output=1")
	if err != nil {
		return m, 0, err
	}
	defer archive.Close()
	if n, err = io.Copy(f, archive); err != nil { // also if less than its length has arrived
		return m, n, cli.Unwritable("--output", f.Name(), err)
	}
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return m, n, err
	}
	r, err := snapshots.NewReader(f) // the server has verified the rest
	if err != nil {
		return m, n, fmt.Errorf("answer of the server: %w", err)
	}
	return r.Manifest, n, nil
}

// snapshotListCmd prints the object store as a table.
type snapshotListCmd struct{ bucketFlags }

// Run prints a line for each snapshot.
func (c *snapshotListCmd) Run(p *process) error {
	return c.with(p, func(ctx context.Context, b *bucket.Bucket) error {
		items, _, err := b.List(ctx)
		if err != nil && !errors.Is(err, bucket.ErrNoBucket) {
			return c.unanswered(err)
		}
		return printItems(p.stdout, items)
	})
}

func printItems(w io.Writer, items []bucket.Object) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSEQUENCE\tTIME\tENTRIES\tBYTES\tDIGEST")
	for _, i := range items {
		at := i.Time.UTC().Format(time.RFC3339)
		if i.Err != nil {
			fmt.Fprintf(table, "%s\t-\t%s\t-\t%d\tunusable: %s\n", cli.Printable(i.Name), at, i.Bytes, cli.Printable(natserr.OneLine(i.Err)))
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%d\t%s\n", cli.Printable(i.Name), i.Manifest.Sequence, at, i.Manifest.EntryCount(), i.Bytes, i.Manifest.Digest)
	}
	return table.Flush()
}

// snapshotVerifyCmd reads a snapshot to its end.
type snapshotVerifyCmd struct {
	Snapshot string `arg:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store."`
	bucketFlags
}

// Run prints the content of a good snapshot.
func (c *snapshotVerifyCmd) Run(p *process) error {
	return c.read(p, c.Snapshot, func(ctx context.Context, open opener) error {
		m, err := open.verify(ctx)
		if err != nil {
			return unusable(c.Snapshot, err)
		}
		_, err = fmt.Fprintf(p.stdout, "%s: good: %s\n", cli.Printable(c.Snapshot), summary(m))
		return err
	})
}

// snapshotRestoreCmd restores a read model from a snapshot.
type snapshotRestoreCmd struct {
	Snapshot string `arg:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store."`
	DataDir  string `default:"data" placeholder:"DIR" help:"Data directory, which no process may be using (default: data)."`
	Force    bool   `help:"Rename an existing read model aside."`
	bucketFlags
}

// Help returns the help beyond the flags.
func (snapshotRestoreCmd) Help() string {
	return "A server started on it replays what the stream has had since. If that stream is lost, the server shows the snapshot's state, including everybody delisted since: " +
		"to recover from the loss of the stream, use registry recover instead."
}

// Run touches the data directory only once it has read a snapshot's header: for a missing or
// foreign file, it creates no directory and no lock.
func (c *snapshotRestoreCmd) Run(p *process) error {
	return c.read(p, c.Snapshot, func(ctx context.Context, open opener) error {
		archive, err := open()
		if err != nil {
			return unusable(c.Snapshot, err)
		}
		return c.restore(ctx, p.stdout, archive)
	})
}

// restore takes the directory's lock, as a server would.
func (c *snapshotRestoreCmd) restore(ctx context.Context, stdout io.Writer, archive *snapshots.Reader) (err error) {
	lock, err := serve.LockDir(c.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	aside, err := snapshots.Restore(ctx, archive, snapshots.RestoreConfig{Path: serve.StorePath(c.DataDir), Replace: c.Force})
	if errors.Is(err, snapshots.ErrExists) {
		return fmt.Errorf("%w; --force renames it aside", err)
	}
	unsynced := errors.Is(err, snapshots.ErrNotSynced)
	if err != nil && !unsynced {
		return fmt.Errorf("%w; the read model is as it was", unusable(c.Snapshot, err))
	}
	if aside != "" {
		fmt.Fprintf(stdout, "the old read model is now %s\n", aside)
	}
	if _, err := fmt.Fprintf(stdout, "restored into %s: %s\n", c.DataDir, summary(archive.Manifest)); err != nil {
		return err
	}
	if unsynced {
		return fmt.Errorf("%s is restored, but %w: check the disk, then restore again with --force", c.DataDir, err)
	}
	return nil
}

// bucketFlags are the flags for reaching the object store.
type bucketFlags struct{ cli.BrokerFlags }

// with connects, calls do, and closes the connection.
func (f bucketFlags) with(p *process, do func(context.Context, *bucket.Bucket) error) error {
	if err := f.Check(); err != nil {
		return err
	}
	nc, err := f.Connect("registry snapshot")
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("broker at %s: %w", f.Addresses(), err)
	}
	return cli.Interrupted(p.ctx, do(p.ctx, bucket.New(js, bucket.Config{})))
}

// unanswered returns the error of a request about the object store, with the broker's name and the
// remedy.
func (f bucketFlags) unanswered(err error) error {
	return fmt.Errorf("broker at %s: object store: %w", f.Addresses(), cli.Advise(err))
}

// opener reads a snapshot from its beginning, each time that it is called.
type opener func() (*snapshots.Reader, error)

// verify reads the whole snapshot.
func (open opener) verify(ctx context.Context) (snapshots.Manifest, error) {
	r, err := open()
	if err != nil {
		return snapshots.Manifest{}, err
	}
	return r.Manifest, r.Verify(ctx)
}

// read calls do with a snapshot: the file of that name or, if there is none, the one in the object store.
func (f bucketFlags) read(p *process, name string, do func(context.Context, opener) error) error {
	file, err := os.Open(name)
	if err == nil {
		defer file.Close()
		opened := false
		return cli.Interrupted(p.ctx, do(p.ctx, func() (*snapshots.Reader, error) {
			if opened { // a pipe can be read once
				if _, err := file.Seek(0, io.SeekStart); err != nil {
					return nil, err
				}
			}
			opened = true
			return snapshots.NewReader(file)
		}))
	}
	if !errors.Is(err, os.ErrNotExist) || strings.ContainsRune(name, os.PathSeparator) {
		return unusable(name, cli.Bare(err))
	}
	return f.with(p, func(ctx context.Context, b *bucket.Bucket) error {
		item, err := b.Find(ctx, name)
		if errors.Is(err, bucket.ErrNotFound) || errors.Is(err, bucket.ErrNoBucket) {
			return fmt.Errorf("%s: no such file, and no such snapshot in the object store; registry snapshot list shows them", cli.Printable(name))
		}
		if err != nil {
			return f.unanswered(err)
		}
		return do(ctx, func() (*snapshots.Reader, error) {
			archive, err := b.Open(ctx, item)
			if err != nil {
				return nil, err
			}
			return snapshots.NewReader(archive)
		})
	})
}

// unusable adds an alternative to the error of a snapshot.
func unusable(name string, err error) error {
	return fmt.Errorf("%s: %w; %s", cli.Printable(name), err, cli.SnapshotAdvice(err))
}
