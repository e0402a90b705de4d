package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// exportCmd writes the whole content as events.
type exportCmd struct {
	Snapshot            string     `arg:"" optional:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store. Default: the running server's content."`
	RelistDelistedAfter *time.Time `placeholder:"TIME" format:"2006-01-02T15:04:05Z07:00" help:"Export only the accused in the snapshot whom the running server knows as delisted after this time (RFC 3339), as new states that list them again: after a backend delisted many by mistake."`
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
	if c.Snapshot == "" && c.RelistDelistedAfter != nil {
		return cli.Usagef("--relist-delisted-after: name a snapshot that lists them")
	}
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
		if c.RelistDelistedAfter != nil {
			return c.relist(p, r, out)
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

// relist writes the accused of a snapshot whom the server knows as delisted after a time, each with
// the revision after its tombstone's.
func (c *exportCmd) relist(p *process, r *snapshots.Reader, to io.Writer) error {
	now, err := serverTombstones(p, c.AdminFlags)
	if err != nil {
		return err
	}
	gone := map[events.Subject]int64{} // revisions
	for _, d := range now.Removals {
		if events.RemovedAt(d).After(*c.RelistDelistedAfter) {
			gone[d.Subject()] = events.Revision(d)
		}
	}
	out, listed, greatest := bufio.NewWriter(to), map[events.List]int{}, int64(0)
	var unencoded error
	err = r.EachState(p.ctx, func(s readmodel.State) {
		e, ok := s.Data.(events.Entry)
		revision, delisted := gone[s.Data.Subject()]
		if !ok || !delisted || e.List.Trusted() {
			return
		}
		e.Revision = revision + 1
		listed[e.List]++
		greatest = max(greatest, e.Revision)
		line, err := events.Encode(events.StateEvent(e))
		unencoded = cmp.Or(unencoded, err)
		_, _ = out.Write(append(line, '\n')) // the writer keeps its error for Flush
	})
	if err := errors.Join(err, unencoded, out.Flush()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stderr, "exported: %d of scammers and %d of servers, which the server knows as delisted after %s; greatest revision %d: the backend goes on above it\n",
		listed[events.Scammers], listed[events.Servers], c.RelistDelistedAfter.UTC().Format(time.RFC3339), greatest)
	return err
}
