package main

import (
	"fmt"
	"io"
	"strings"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/projector/leader"
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
		"memory as the read model, or reads --tombstones FILE, and writes a tombstone in place of each entry that was delisted after the snapshot. If it can do " +
		"neither, it exports nothing and exits with status 1. To recover from the loss of the stream, export the running server, or a snapshot with --tombstones, into a file; then run " +
		"registry publish --create-stream with it, and registry rebuild --accept-stream. " +
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
	return c.unpacked(p, c.Snapshot, func(path string, m snapshots.Manifest) error {
		since, source, err := c.since(p, m)
		if err != nil {
			return err
		}
		done, err := snapshots.ExportFile(p.ctx, path, out, since)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stderr, "exported: entries %d, view totals %d, donations %d, tombstones %d; left out %d that were delisted after the snapshot (%s)\n",
			done.Entries, done.Views, done.Donations, done.Tombstones, done.LeftOut, source)
		return err
	})
}

// since is what has become of the entries of a snapshot, and who says so
// (cmd/registry/CONTRACT.md#coming-back). With a file, or with --relist, the stream only says which
// of the snapshot's tombstones have had their day, if it can be asked.
func (c *exportCmd) since(p *process, m snapshots.Manifest) (since snapshots.Since, source string, err error) {
	var said []readmodel.Tombstone
	if c.Tombstones != "" {
		if said, err = readTombstones(c.Tombstones); err != nil {
			return since, "", err
		}
	}
	since, err = c.askStream(p, m)
	switch {
	case p.ctx.Err() != nil:
		return since, "", p.ctx.Err()
	case c.Tombstones != "":
		since.Delisted, source = newestAfter(said, m.Checkpoint), "according to "+cli.Printable(c.Tombstones)
	case c.Relist:
		since.Delisted, source = nil, "--relist"
	case err != nil:
		return since, "", fmt.Errorf("cannot tell who was delisted after this snapshot: %s; or name what registry tombstones wrote last with --tombstones FILE; "+
			"only after a mistake of the backend's, export everybody with --relist", strings.TrimSuffix(err.Error(), "."))
	default:
		return since, "according to the stream " + string(c.Stream), nil
	}
	if err != nil {
		source += "; the stream could not be asked"
	}
	return since, source, nil
}

// askStream replays the stream, if the snapshot is of it.
func (c *exportCmd) askStream(p *process, m snapshots.Manifest) (snapshots.Since, error) {
	name := string(c.Stream)
	nc, js, err := cli.StreamFlags{BrokerFlags: c.BrokerFlags, Stream: c.Stream}.Open(p.ctx, "registry export", nil)
	if err != nil {
		return snapshots.Since{}, err
	}
	defer nc.Close()
	if err := (leader.Stream{JS: js, Name: name}).Check(p.ctx, m.Checkpoint); err != nil {
		return snapshots.Since{}, fmt.Errorf("broker at %s: %w", c.Addresses(), err)
	}
	r := startReplay(js, name)
	err = r.catchUp(p.ctx, p.stderr)
	stopErr := r.following.Stop() // from here on the model is ours
	if err != nil {
		return snapshots.Since{}, err
	}
	if stopErr != nil {
		return snapshots.Since{}, stopErr
	}
	since := snapshots.Since{Listed: func(k events.Subject) bool {
		sequence, ok := r.model.Listed(k)
		return ok && sequence > m.Sequence
	}}
	for _, t := range r.model.Tombstones() {
		if t.Sequence > m.Sequence {
			since.Delisted = append(since.Delisted, t)
		}
	}
	return since, nil
}
