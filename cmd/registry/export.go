package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/snapshots"
)

// exportCmd writes the whole content as events.
type exportCmd struct {
	Snapshot string `arg:"" optional:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store. Default: the running server's content."`
	cli.AdminFlags
	bucketFlags
}

// Help returns the help beyond the flags.
func (exportCmd) Help() string {
	return "One CloudEvent a line, in a fixed order, each with its revision and the id that follows from it: entries, view totals (also of entries that are not listed), donations, and " +
		"removals (as delisted and removed). Publishing it is harmless, since of a subject the greatest revision is true: whoever was delisted since a snapshot stays delisted. " +
		"It is a format for moving data: to recover from the loss of the stream, use registry recover. " +
		"An export that cannot be finished ends with a line that publish refuses, and with status 1."
}

// Run writes nothing before everything has been verified. The summary goes to standard error.
func (c *exportCmd) Run(p *process) error {
	return endWith(p, snapshots.ExportFailed, c.write)
}

func (c *exportCmd) write(p *process, out io.Writer) error {
	if c.Snapshot == "" {
		return copyAnswer(p, c.AdminFlags, http.MethodGet, "/export", out)
	}
	return c.read(p, c.Snapshot, func(ctx context.Context, open opener) error {
		if _, err := open.verify(ctx); err != nil {
			return unusable(c.Snapshot, err)
		}
		r, err := open()
		if err != nil {
			return unusable(c.Snapshot, err)
		}
		done, err := snapshots.Export(ctx, r, out)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stderr, "exported: entries %d, view totals %d, donations %d, removals %d\n",
			done.Entries, done.Views, done.Donations, done.Tombstones)
		return err
	})
}
