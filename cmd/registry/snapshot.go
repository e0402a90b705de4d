package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"text/tabwriter"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/serve"
	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/snapshots"
)

// snapshotCmd manages snapshots.
type snapshotCmd struct {
	Create  snapshotCreateCmd  `cmd:"" help:"Make a snapshot of the running server, into the object store or a file."`
	List    snapshotListCmd    `cmd:"" help:"Show the snapshots in the object store, the newest first."`
	Verify  snapshotVerifyCmd  `cmd:"" help:"Check the digest and structure of a snapshot. Touches no data directory."`
	Restore snapshotRestoreCmd `cmd:"" help:"Restore a snapshot into a data directory that is not in use. Does not touch the broker's store."`
}

// snapshotCreateCmd makes a snapshot of the running server.
type snapshotCreateCmd struct {
	Output string `placeholder:"FILE" help:"Write the snapshot to this file instead of the object store, in one step once it is complete."`
	cli.AdminFlags
}

// Run makes the snapshot and prints its description.
func (c *snapshotCreateCmd) Run(p *process) (err error) {
	var made serve.Created
	if c.Output == "" {
		err = c.AskJSON(p.ctx, http.MethodPost, "/snapshots", &made)
	} else {
		made.Name = c.Output
		made.Header, err = replaceFile(c.Output, func(to io.Writer) (snapshots.Header, error) { return c.writeStates(p, to) })
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %s\n", cli.Printable(made.Name), describeHeader(made.Header))
	return err
}

// writeStates writes the running server's states, packed.
func (c *snapshotCreateCmd) writeStates(p *process, to io.Writer) (h snapshots.Header, err error) {
	from, err := c.Ask(p.ctx, http.MethodGet, "/export")
	if err != nil {
		return h, err
	}
	defer from.Close()

	packed, err := snapshots.Pack(to)
	if err != nil {
		return h, err
	}
	if h, err = copyStates(from, packed); err != nil {
		return h, explainSource(runningServer, err)
	}
	return h, packed.Close()
}

// snapshotListCmd prints a table of the snapshots in the object store.
type snapshotListCmd struct{ cli.BrokerFlags }

// Run prints a line for each snapshot.
func (c *snapshotListCmd) Run(p *process) error {
	nc, js, err := c.Connect("registry snapshot")
	if err != nil {
		return err
	}
	defer nc.Close()
	all, err := snapshots.NewBucket(js).List(p.ctx)
	if err != nil {
		return explainBucket(c.BrokerFlags, err)
	}

	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tCHECKPOINT\tTIME\tSTATES\tBYTES\tDIGEST")
	for _, o := range all {
		madeAt := o.Time.UTC().Format(time.RFC3339)
		if o.Err != nil {
			fmt.Fprintf(table, "%s\t-\t%s\t-\t%d\tunusable: %s\n", cli.Printable(o.Name), madeAt, o.Bytes, cli.Printable(natserr.OneLine(o.Err)))
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%d\t%s\n", cli.Printable(o.Name), o.Header.Sequence, madeAt, o.Header.Count, o.Bytes, o.Header.Digest)
	}
	return table.Flush()
}

// snapshotVerifyCmd checks a snapshot by reading it to its end.
type snapshotVerifyCmd struct {
	Snapshot string `arg:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store."`
	cli.BrokerFlags
}

// Run prints the description of a good snapshot.
func (c *snapshotVerifyCmd) Run(p *process) error {
	from, err := openStates(p, c.Snapshot, c.BrokerFlags)
	if err != nil {
		return err
	}
	defer from.Close()

	h, err := snapshots.Read(from, func(uint64, events.Event) error { return p.ctx.Err() }) // a signal ends the reading
	if err != nil {
		return explainSource(c.Snapshot, err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s: good: %s\n", cli.Printable(c.Snapshot), describeHeader(h))
	return err
}

// snapshotRestoreCmd restores a store from a snapshot.
type snapshotRestoreCmd struct {
	Snapshot string `arg:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store."`
	DataDir  string `default:"data" placeholder:"DIR" help:"Data directory, which no process may be using (default: data)."`
	Force    bool   `help:"Rename an existing store aside."`
	cli.BrokerFlags
}

func (snapshotRestoreCmd) Help() string {
	return "A server started on it reads what the stream has had since. If that stream is lost, use registry recover instead."
}

// Run opens the snapshot before it touches the data directory. It takes the directory's lock, as a server
// does.
func (c *snapshotRestoreCmd) Run(p *process) (err error) {
	from, err := openStates(p, c.Snapshot, c.BrokerFlags)
	if err != nil {
		return err
	}
	defer from.Close()
	lock, err := snapshots.LockDir(c.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()

	path := serve.StorePath(c.DataDir)
	_, err = os.Lstat(path)
	hasOldStore := !errors.Is(err, fs.ErrNotExist)
	if hasOldStore && !c.Force {
		return fmt.Errorf("%s: there is a store already; --force renames it aside", path)
	}

	h, err := snapshots.Restore(p.ctx, from, path)
	if err != nil {
		return fmt.Errorf("%w; the data directory is as it was", explainSource(c.Snapshot, err))
	}

	if hasOldStore {
		fmt.Fprintf(p.stdout, "the old store is now %s%s\n", path, snapshots.ReplacedSuffix)
	}
	_, err = fmt.Fprintf(p.stdout, "restored into %s: %s\n", c.DataDir, describeHeader(h))
	return err
}
