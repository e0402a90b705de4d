package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector/recovery"
	"example.org/registry/readmodel"
)

// recoverCmd publishes what the stream has lost.
type recoverCmd struct {
	Snapshot   string         `arg:"" optional:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store. Default: what the running server has."`
	Tombstones string         `placeholder:"FILE" help:"Output of registry tombstones that is newer than the snapshot: what it names stays off the lists."`
	DryRun     bool           `help:"Only compare, and print how much would be published."`
	Yes        bool           `help:"Publish without asking."`
	Stream     cli.StreamName `default:"REGISTRY" help:"Name of the event stream." group:"Broker and stream"`
	creating   `embed:""`
	cli.AdminFlags
	bucketFlags
}

// Help is what registry recover --help says beyond the flags.
func (recoverCmd) Help() string {
	return "The way back after the stream was lost, came back from a backup, or was erased. Compares what the running server (or a snapshot) has with the stream at --nats-url and publishes " +
		"what the stream lacks, or has with a smaller revision: entries, removals, donations and view totals. States of the stream with a greater revision stay. The backend may go on publishing: nothing newer is overwritten. " +
		"Then the running server accepts the stream. If interrupted, run it again; once everything is published, it publishes nothing. " +
		"Without a terminal it needs --yes. Takes as much memory as the read model."
}

// rounds bounds how often the comparison is repeated because the backend has published meanwhile.
const rounds = 20

// Run compares, asks, publishes, and has the server accept the stream.
func (c *recoverCmd) Run(p *process) error {
	if err := errors.Join(c.creating.check(), c.BrokerFlags.Check()); err != nil {
		return err
	}
	if c.Snapshot == "" && c.Tombstones != "" {
		return cli.Usagef("--tombstones: name a snapshot; what the running server has is up to date")
	}
	return cli.Interrupted(p.ctx, c.known(p, func(known *recovery.Known) error { return c.recover(p, known) }))
}

// known reads the snapshot, or has the server make one.
func (c *recoverCmd) known(p *process, do func(*recovery.Known) error) error {
	name := c.Snapshot
	if name == "" {
		dir, err := os.MkdirTemp("", "registry-recover-")
		if err != nil {
			return fmt.Errorf("temporary directory: %w; set TMPDIR", err)
		}
		defer os.RemoveAll(dir)
		name = filepath.Join(dir, "server.snapshot")
		f, err := os.Create(name)
		if err != nil {
			return fmt.Errorf("temporary directory: %w; set TMPDIR", err)
		}
		_, _, err = takeArchive(p, c.AdminFlags, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%w; if no server has a state, name a snapshot", err)
		}
	}
	return c.read(p, name, func(ctx context.Context, open opener) error {
		r, err := open()
		if err != nil {
			return unusable(name, err)
		}
		known := &recovery.Known{At: r.Manifest.Checkpoint}
		if err := r.EachState(ctx, known.Add); err != nil {
			return unusable(name, err)
		}
		if c.Tombstones != "" {
			said, err := readTombstones(c.Tombstones)
			if err != nil {
				return err
			}
			for _, d := range said.Removals {
				known.Add(readmodel.State{Data: d})
			}
		}
		return do(known)
	})
}

func (c *recoverCmd) recover(p *process, known *recovery.Known) error {
	nc, err := c.Connect("registry recover")
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	stream := leader.Stream{JS: js, Name: string(c.Stream)}
	_, err = stream.Info(p.ctx)
	missing := errors.Is(err, jetstream.ErrStreamNotFound)
	switch {
	case missing && !c.CreateStream && !c.DryRun:
		return fmt.Errorf("broker at %s: it has no stream %s; create it with --create-stream, or correct --stream", c.Addresses(), c.Stream)
	case err != nil && !missing:
		return fmt.Errorf("broker at %s: %w", c.Addresses(), cli.Advise(err))
	}
	plan, err := recovery.Compare(p.ctx, stream, known)
	if err != nil {
		return c.failed(nc, err)
	}
	if err := c.report(p.stdout, plan, missing); err != nil || c.DryRun {
		return err
	}
	if len(plan.Changes) > 0 || plan.Begins() {
		if err := c.permitted(p); err != nil {
			return err
		}
	}
	if missing {
		if err := c.create(p.ctx, js, stream.Name); err != nil {
			return err
		}
		if plan, err = recovery.Compare(p.ctx, stream, known); err != nil {
			return c.failed(nc, err)
		}
	}
	if err := c.publish(p, stream, known, plan); err != nil {
		return c.failed(nc, err)
	}
	return c.accept(p, plan)
}

func (c *recoverCmd) failed(nc *nats.Conn, err error) error {
	if nc.IsConnected() {
		return fmt.Errorf("%w; run the same command again", err)
	}
	return fmt.Errorf("broker at %s: connection lost: %w; run the same command again", c.Addresses(), err)
}

// report prints what is about to be done.
func (c *recoverCmd) report(w io.Writer, plan *recovery.Plan, missing bool) error {
	n := plan.Counts()
	what := "the stream does not continue what is known"
	switch {
	case missing:
		what = "the stream is missing"
	case plan.Continues:
		what = "the stream continues what is known"
	}
	_, err := fmt.Fprintf(w, "%s; to publish: %d listings, %d amendments, %d delistings, %d donations, %d view totals; "+
		"%d newer states of the stream stay\n", what, n.Listings, n.Amendments, n.Delistings, n.Donations, n.Views, plan.Newer)
	return err
}

// permitted asks on a terminal.
func (c *recoverCmd) permitted(p *process) error {
	if c.Yes {
		return nil
	}
	stdin, ok := p.stdin.(*os.File)
	if !ok || !cli.IsTerminal(stdin) || !cli.IsTerminal(p.stderr) {
		return errors.New("nothing was published; repeat with --yes")
	}
	fmt.Fprint(p.stderr, "publish this? [y/N] ")
	line, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y") {
		return errors.New("nothing was published")
	}
	return nil
}

// publish publishes, and compares again where the backend was faster.
func (c *recoverCmd) publish(p *process, stream leader.Stream, known *recovery.Known, plan *recovery.Plan) error {
	published := 0
	for range rounds {
		bar := cli.NewBar(p.stderr)
		bar.Start("publishing", int64(len(plan.Changes)), false)
		conflicts, err := recovery.Publish(p.ctx, stream, plan, func() { bar.Add(1) })
		bar.Finish()
		if err != nil {
			return err
		}
		published += len(plan.Changes) - conflicts
		if conflicts == 0 {
			_, err := fmt.Fprintf(p.stdout, "published: %d\n", published)
			return err
		}
		if plan, err = recovery.Compare(p.ctx, stream, known); err != nil {
			return err
		}
	}
	return errors.New("the backend publishes on the same subjects all the time")
}

// noticedWithin is how long a server may take to notice that its stream is another one.
const noticedWithin = 15 * time.Second

func frozen(now admin.Projection) bool {
	return now.LastError != nil && strings.Contains(*now.LastError, "registry rebuild --accept-stream")
}

// accept has the running server accept the stream, if it is frozen.
func (c *recoverCmd) accept(p *process, plan *recovery.Plan) error {
	now, err := projectionAt(p.ctx, c.AdminFlags)
	if err != nil && c.Snapshot != "" {
		_, err := fmt.Fprintf(p.stdout, "no server was asked (%s); one that is frozen accepts the stream with registry rebuild --accept-stream\n", natserr.OneLine(err))
		return err
	}
	if err != nil {
		return err
	}
	for wait := time.Now().Add(noticedWithin); !frozen(now); {
		if plan.Continues || c.Snapshot != "" || time.Now().After(wait) {
			return nil // it follows the stream
		}
		if !pause.For(p.ctx, noticedWithin/100) {
			return p.ctx.Err()
		}
		if now, err = projectionAt(p.ctx, c.AdminFlags); err != nil {
			return err
		}
	}
	// What the server itself knows is compared only if no snapshot was named, so only then does it
	// need no look of its own at what it would lose or list again.
	path := "/rebuild?accept-stream=true"
	if c.Snapshot == "" {
		path += "&yes=true"
	}
	var rebuilt admin.Rebuilt
	if err := c.AskJSON(p.ctx, http.MethodPost, path, &rebuilt); err != nil && c.Snapshot != "" {
		return fmt.Errorf("everything that the snapshot holds is published, and the server has not accepted the stream: %w; "+
			"run registry recover without a name, which publishes what the server knows", err)
	} else if err != nil {
		return fmt.Errorf("everything is published, and the server has not accepted the stream: %w; run the same command again", err)
	}
	_, err = io.WriteString(p.stdout, summaryOf(rebuilt))
	return err
}
