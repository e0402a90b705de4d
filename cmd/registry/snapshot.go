package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
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
		return cli.Interrupted(p.ctx, c.print(p))
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
	if n, err = io.Copy(f, archive); err != nil {
		return m, n, cli.Unwritable("--output", f.Name(), err)
	}
	m, err = taken(f, n)
	return m, n, err
}

// print writes the snapshot to standard output. Its checksum reveals a truncated one.
func (c *snapshotCreateCmd) print(p *process) error {
	archive, err := c.Ask(p.ctx, http.MethodPost, "/snapshots?output=1")
	if err != nil {
		return err
	}
	defer archive.Close()
	if _, err := io.Copy(p.stdout, archive); err != nil {
		return fmt.Errorf("snapshot: cut short: %w", err)
	}
	return nil
}

// taken checks that the whole archive has arrived. The server has verified its content.
func taken(f *os.File, n int64) (snapshots.Manifest, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return snapshots.Manifest{}, err
	}
	r := bufio.NewReader(f)
	m, err := snapshots.ReadManifest(r)
	if err != nil {
		return m, fmt.Errorf("answer of the server: %w", err)
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err == nil && n != at-int64(r.Buffered())+m.Packed {
		err = errors.New("answer of the server was cut short; try again")
	}
	return m, err
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

// snapshotVerifyCmd unpacks a snapshot into a temporary directory and loads it there.
type snapshotVerifyCmd struct {
	Snapshot string `arg:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store."`
	bucketFlags
}

// Run prints the content of a good snapshot.
func (c *snapshotVerifyCmd) Run(p *process) error {
	return c.unpacked(p, c.Snapshot, func(_ string, m snapshots.Manifest) error {
		_, err := fmt.Fprintf(p.stdout, "%s: good: %s\n", cli.Printable(c.Snapshot), summary(m))
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
	return c.open(p, c.Snapshot, func(ctx context.Context, archive io.Reader) error {
		var head bytes.Buffer
		if _, err := snapshots.ReadManifest(bufio.NewReader(io.TeeReader(archive, &head))); err != nil {
			return unusable(c.Snapshot, err)
		}
		return c.restore(ctx, p.stdout, io.MultiReader(&head, archive))
	})
}

// restore takes the directory's lock, as a server would.
func (c *snapshotRestoreCmd) restore(ctx context.Context, stdout io.Writer, archive io.Reader) (err error) {
	lock, err := serve.LockDir(c.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	m, aside, err := snapshots.Restore(ctx, archive, snapshots.RestoreConfig{Path: serve.StorePath(c.DataDir), Replace: c.Force})
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
	if _, err := fmt.Fprintf(stdout, "restored into %s: %s\n", c.DataDir, summary(m)); err != nil {
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

// open calls do with an archive: that of a file or, if there is no such file, of the object store.
func (f bucketFlags) open(p *process, name string, do func(context.Context, io.Reader) error) error {
	file, err := os.Open(name)
	if err == nil {
		defer file.Close()
		return cli.Interrupted(p.ctx, do(p.ctx, file))
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
		archive, err := b.Open(ctx, item)
		if err != nil {
			return unusable(name, err)
		}
		return do(ctx, archive)
	})
}

// unpacked calls do with the verified store file of a snapshot, in a temporary directory.
func (f bucketFlags) unpacked(p *process, name string, do func(path string, m snapshots.Manifest) error) error {
	dir, err := os.MkdirTemp("", "registry-snapshot-")
	if err != nil {
		return fmt.Errorf("temporary directory: %w; set TMPDIR", err)
	}
	defer os.RemoveAll(dir)
	return f.open(p, name, func(ctx context.Context, archive io.Reader) error {
		path := filepath.Join(dir, "registry.db")
		m, err := snapshots.Unpack(ctx, archive, path)
		if err != nil {
			return unusable(name, err)
		}
		return do(path, m)
	})
}

// unusable adds an alternative to the error of a snapshot.
func unusable(name string, err error) error {
	return fmt.Errorf("%s: %w; %s", cli.Printable(name), err, cli.SnapshotAdvice(err))
}
