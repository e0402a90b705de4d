package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/recovery"
	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// exportCmd writes the whole content as events.
type exportCmd struct {
	Snapshot   string         `arg:"" optional:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store. Default: the running server's content."`
	Tombstones string         `placeholder:"FILE" help:"Leave out who was delisted after the snapshot according to this output of registry tombstones, instead of asking the stream."`
	Relist     bool           `help:"Export everybody in the snapshot, including those delisted after it: for a backend that delisted people by mistake."`
	Stream     cli.StreamName `default:"REGISTRY" help:"Name of the event stream, which says who was delisted after the snapshot." group:"Broker and stream"`
	cli.AdminFlags
	bucketFlags
}

// Help is what registry export --help says beyond the flags.
func (exportCmd) Help() string {
	return "One CloudEvent a line, in a fixed order, each with a new id: entries, view totals (also of entries that are not listed), donations and tombstones (as delisted). " +
		"A snapshot is old, and whoever was delisted since must not be accused again. So the export of a snapshot asks the stream at --nats-url, which takes as much " +
		"memory as the read model, and gives the newest state of everything; or it reads --tombstones FILE. It writes a tombstone in place of each entry that was delisted " +
		"since the snapshot. If it can do neither, it exports nothing and exits with status 1. It is a format for moving data: to recover from the loss of the stream, use registry recover. " +
		"An export that cannot be finished ends with a line that publish refuses, and with status 1."
}

// Run writes nothing before everything has been verified. The summary goes to standard error.
func (c *exportCmd) Run(p *process) error {
	switch {
	case c.Snapshot == "" && (c.Relist || c.Tombstones != ""):
		return cli.Usagef("--relist, --tombstones: name a snapshot; what the running server has is up to date")
	case c.Relist && c.Tombstones != "":
		return cli.Usagef("--relist: exports everybody, so --tombstones has no use")
	}
	return endWith(p, snapshots.ExportFailed, c.write)
}

func (c *exportCmd) write(p *process, out io.Writer) error {
	if c.Snapshot == "" {
		return copyAnswer(p, c.AdminFlags, "/export", out)
	}
	return c.read(p, c.Snapshot, func(ctx context.Context, open opener) error {
		m, err := open.verify(ctx)
		if err != nil {
			return unusable(c.Snapshot, err)
		}
		since, source, err := c.delistingsSince(p, open, m)
		if err != nil {
			return err
		}
		r, err := open()
		if err != nil {
			return unusable(c.Snapshot, err)
		}
		done, err := snapshots.Export(ctx, r, out, since)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stderr, "exported: entries %d, view totals %d, donations %d, tombstones %d; left out %d that were delisted after the snapshot (%s)\n",
			done.Entries, done.Views, done.Donations, done.Tombstones, done.LeftOut, source)
		return err
	})
}

// delistingsSince returns what has become of the entries of a snapshot, and its source
// (cmd/registry/CONTRACT.md#coming-back). With --relist, the stream only tells which of the snapshot's
// tombstones are outdated, if it can be asked.
func (c *exportCmd) delistingsSince(p *process, open opener, m snapshots.Manifest) (since snapshots.Since, source string, err error) {
	if c.Tombstones != "" {
		since, err = c.askFile(p, open)
		return since, "according to " + cli.Printable(c.Tombstones), err
	}
	since, err = c.askStream(p, m)
	switch {
	case p.ctx.Err() != nil:
		return since, "", p.ctx.Err()
	case c.Relist && err != nil:
		return snapshots.Since{}, "--relist; the stream could not be asked", nil
	case c.Relist:
		return snapshots.Since{Listed: since.Listed}, "--relist", nil
	case err != nil:
		return since, "", fmt.Errorf("cannot tell who was delisted after this snapshot: %s; or name what registry tombstones wrote last with --tombstones FILE; "+
			"only after a mistake of the backend's, export everybody with --relist", strings.TrimSuffix(err.Error(), "."))
	}
	return since, "according to the stream " + string(c.Stream), nil
}

// askFile reads --tombstones.
func (c *exportCmd) askFile(p *process, open opener) (since snapshots.Since, err error) {
	said, err := readTombstones(c.Tombstones)
	if err != nil {
		return since, err
	}
	r, err := open()
	if err != nil {
		return since, err
	}
	known, err := recovery.Read(p.ctx, r)
	if err != nil {
		return since, err
	}
	before := maps.Clone(known.States)
	known.Add(said)
	gone := map[events.Subject]bool{}
	since.Newer = map[events.Subject]events.Data{}
	for subject, now := range known.States {
		_, already := before[subject].Data.(events.Delisting)
		switch d := now.Data.(type) {
		case events.Delisting:
			if !already {
				since.Delisted = append(since.Delisted, now.Delisted)
			}
		case events.Entry:
			since.Newer[subject] = d // as in the file, but for trust that was withdrawn since
		}
		gone[subject] = true
	}
	since.Listed = func(k events.Subject) bool { return !gone[k] }
	readmodel.SortTombstones(since.Delisted)
	return since, nil
}

// askStream reads the stream, if it continues the snapshot.
func (c *exportCmd) askStream(p *process, m snapshots.Manifest) (since snapshots.Since, err error) {
	nc, js, err := cli.StreamFlags{BrokerFlags: c.BrokerFlags, Stream: c.Stream}.Open(p.ctx, "registry export", nil)
	if err != nil {
		return since, err
	}
	defer nc.Close()
	stream := leader.Stream{JS: js, Name: string(c.Stream)}
	if err := lineage.Check(p.ctx, stream, m.Checkpoint); err != nil {
		return since, fmt.Errorf("broker at %s: %w", c.Addresses(), err)
	}
	found, err := recovery.Scan(p.ctx, stream, nil)
	if err != nil {
		return since, err
	}
	since.Newer = map[events.Subject]events.Data{}
	for subject, is := range found.States {
		if is.Data == nil || is.Sequence <= m.Sequence {
			continue
		}
		if _, delisted := is.Data.(events.Delisting); delisted {
			since.Delisted = append(since.Delisted, is.Delisted)
		} else {
			since.Newer[subject] = is.Data
		}
	}
	since.Listed = func(k events.Subject) bool { return since.Newer[k] != nil }
	readmodel.SortTombstones(since.Delisted)
	return since, nil
}
