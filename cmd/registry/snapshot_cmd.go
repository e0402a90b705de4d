package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

// snapshotCmd sees to snapshots.
type snapshotCmd struct {
	Create  snapshotCreateCmd  `cmd:"" help:"Ask a running server for a snapshot at its checkpoint, into the object store or a file."`
	List    snapshotListCmd    `cmd:"" help:"Show the snapshots in the object store, the newest first."`
	Verify  snapshotVerifyCmd  `cmd:"" help:"Check a snapshot: digest, checksums, structure. Touches no data directory."`
	Restore snapshotRestoreCmd `cmd:"" help:"Make the read model of a data directory that is not in use out of a snapshot. The broker's store is not touched."`
}

// snapshotCreateCmd asks a running server.
type snapshotCreateCmd struct {
	Output string `placeholder:"FILE" help:"Take it into this file; the object store is left alone. The file is there when it is complete, and not before."`
	adminFlags
}

// Run prints what was made.
func (c *snapshotCreateCmd) Run(p *process) error {
	if c.Output != "" {
		return plainly(p.ctx, c.take(p))
	}
	body, err := c.ask(p.ctx, http.MethodPost, "/snapshots")
	if err != nil {
		return plainly(p.ctx, err)
	}
	defer body.Close()
	var made created
	if err := json.NewDecoder(body).Decode(&made); err != nil {
		return fmt.Errorf("answer of the server: %w", err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %s, %d bytes\n", printable(made.Name), summary(made.Manifest), made.Bytes)
	return err
}

// summary is one snapshot in words.
func summary(m snapshots.Manifest) string {
	return fmt.Sprintf("stream %s, sequence %d, %d entries, digest %s", printable(m.Stream), m.Sequence, m.Shown(), m.Digest)
}

// take writes beside the file and renames at the end.
func (c *snapshotCreateCmd) take(p *process) (err error) {
	if info, err := os.Stat(c.Output); err == nil && info.IsDir() {
		return unwritable("--output", c.Output, syscall.EISDIR)
	}
	f, err := os.CreateTemp(filepath.Dir(c.Output), filepath.Base(c.Output)+".*.part")
	if err != nil {
		return unwritable("--output", c.Output, err)
	}
	defer func() {
		_ = f.Close()           // after an error, or a second time
		_ = os.Remove(f.Name()) // after an error
	}()
	archive, err := c.ask(p.ctx, http.MethodPost, "/snapshots?output=1")
	if err != nil {
		return err
	}
	defer archive.Close()
	n, err := io.Copy(f, archive)
	if err != nil {
		return unwritable("--output", c.Output, err)
	}
	m, err := taken(f, n)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(f.Name(), c.Output)); err != nil {
		return unwritable("--output", c.Output, err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %s, %d bytes\n", c.Output, summary(m), n)
	return err
}

// taken says whether all of an archive has come. The server has proved what it sent.
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

// Run prints a line for each.
func (c *snapshotListCmd) Run(p *process) error {
	return c.with(p, func(ctx context.Context, b *bucket.Bucket) error {
		items, _, err := b.List(ctx)
		if ignoreNone(err) != nil {
			return c.unanswered(err)
		}
		return printItems(p.stdout, items)
	})
}

func printItems(w io.Writer, items []bucket.Item) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSEQUENCE\tTIME\tENTRIES\tBYTES\tDIGEST")
	for _, i := range items {
		at := i.Time.UTC().Format(time.RFC3339)
		if i.Bad != nil {
			fmt.Fprintf(table, "%s\t-\t%s\t-\t%d\tunusable: %s\n", printable(i.Name), at, i.Bytes, printable(oneLine(i.Bad.Error())))
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%d\t%s\n", printable(i.Name), i.Manifest.Sequence, at, i.Manifest.Shown(), i.Bytes, i.Manifest.Digest)
	}
	return table.Flush()
}

// snapshotVerifyCmd unpacks a snapshot into a temporary directory and loads it there.
type snapshotVerifyCmd struct {
	Snapshot string `arg:"" name:"NAME or FILE" help:"A file, if there is one of this name; else a snapshot in the object store."`
	bucketFlags
}

// Run prints what is in a good one.
func (c *snapshotVerifyCmd) Run(p *process) error {
	return c.unpacked(p, c.Snapshot, func(_ string, m snapshots.Manifest) error {
		_, err := fmt.Fprintf(p.stdout, "%s: good: %s\n", printable(c.Snapshot), summary(m))
		return err
	})
}
