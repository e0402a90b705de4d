package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector/lineage"
	"example.org/registry/projector/recovery"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// recoverCmd publishes what the stream has lost.
type recoverCmd struct {
	Snapshot          string         `arg:"" optional:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store. Default: what the running server has."`
	Tombstones        string         `xor:"tombstones" placeholder:"FILE" help:"With a snapshot: output of registry tombstones. What it names stays off the lists."`
	WithoutTombstones bool           `xor:"tombstones" help:"With a snapshot: there is no such file, so whoever was delisted after the snapshot is listed again."`
	NewHistory        bool           `help:"Begin a new history in any case: after the whole data directory came back from an image."`
	Adopt             string         `placeholder:"EPOCH" help:"Publish into the stream with this epoch although it is another registry's."`
	Fork              bool           `help:"Only make the stream, a copy for tests, a history of its own: before anything else is published there. From then on nothing of it can get into the original by mistake."`
	DryRun            bool           `help:"Only compare, and print how much would be published."`
	Yes               bool           `help:"Publish without asking."`
	Stream            cli.StreamName `default:"REGISTRY" help:"Name of the event stream." group:"Broker and stream"`
	CreateStream      bool           `help:"Create the stream if the broker has none, such as after its loss."`
	newStream         `embed:""`
	cli.AdminFlags
	bucketFlags
}

// Help returns the help beyond the flags.
func (recoverCmd) Help() string {
	return "The way back after the stream was lost, came back from a backup, or was erased. Compares what the running server (or a snapshot) has with the stream at --nats-url and publishes " +
		"what the stream lacks, or has with a smaller revision: entries, removals, donations and view totals. States of the stream with a greater revision stay. The backend may go on publishing: nothing newer is overwritten. " +
		"Where the stream is not as it was read, a new history begins first, which every server follows by itself. A stream of another registry is refused. " +
		"If interrupted, run it again; once everything is published, it publishes nothing. " +
		"Without a terminal it needs --yes. Takes as much memory as the read model."
}

const (
	// rounds bounds how often the comparison is repeated because the backend has published meanwhile.
	rounds = 20

	// noticedWithin is how long a server may take to notice that its stream is another one, or to go on.
	noticedWithin = 15 * time.Second
)

// Run compares, asks and publishes, and waits for the server.
func (c *recoverCmd) Run(p *process) error {
	if err := errors.Join(c.check(), c.newStream.check(), c.BrokerFlags.Check()); err != nil {
		return err
	}
	return cli.Interrupted(p.ctx, c.run(p))
}

func (c *recoverCmd) check() error {
	with := c.Tombstones != "" || c.WithoutTombstones
	switch {
	case c.Fork && (c.Snapshot != "" || with || c.NewHistory || c.Adopt != "" || c.DryRun || c.CreateStream):
		return cli.Usagef("--fork: publishes nothing else, so it goes with none of the other flags but --yes")
	case c.Snapshot == "" && with:
		return cli.Usagef("--tombstones, --without-tombstones: name a snapshot; what the running server has is up to date")
	case c.Snapshot != "" && !with:
		return cli.Usagef("a snapshot does not know who was delisted after it: give --tombstones FILE (output of registry tombstones), or --without-tombstones")
	}
	return nil
}

func (c *recoverCmd) run(p *process) error {
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
	if c.Fork {
		return c.fork(p, nc, stream)
	}
	var known *recovery.Known
	if c.Snapshot == "" {
		known, err = c.server(p, stream)
	} else {
		known, err = c.snapshot(p)
	}
	if err != nil {
		return err
	}
	return c.recover(p, stream, known)
}

func (c *recoverCmd) fork(p *process, nc *nats.Conn, stream leader.Stream) error {
	if err := c.permitted(p); err != nil {
		return err
	}
	name, err := recovery.Fork(p.ctx, stream)
	if err != nil {
		return c.failed(nc, err)
	}
	_, err = fmt.Fprintf(p.stdout, "the stream %s is a history of its own now: %s\n", c.Stream, name)
	return err
}

// server returns the states of the running server, once it has noticed which stream is there.
func (c *recoverCmd) server(p *process, stream leader.Stream) (*recovery.Known, error) {
	source, follows := recovery.Following, readmodel.StreamIdentity{}
	for began := time.Now(); ; {
		now, err := projectionAt(p.ctx, c.AdminFlags)
		if err != nil {
			return nil, fmt.Errorf("%w; if no server has a state, name a snapshot", err)
		}
		if now.Frozen != nil {
			source = recovery.Frozen
			break
		}
		follows.StreamEpoch, follows.StreamCreated = now.Epoch, now.StreamCreated
		info, err := stream.Info(p.ctx)
		if err == nil && lineage.Same(lineage.Of(info), follows) ||
			time.Since(began) > noticedWithin/3 {
			break
		}
		if !pause.For(p.ctx, noticedWithin/100) {
			return nil, p.ctx.Err()
		}
	}
	known, err := serverStates(p.ctx, c.AdminFlags)
	if err != nil {
		return nil, fmt.Errorf("%w; if no server has a state, name a snapshot", err)
	}
	known.Source, known.Stream = source, follows
	return known, nil
}

// serverStates returns the states of the running server.
func serverStates(ctx context.Context, server cli.AdminFlags) (*recovery.Known, error) {
	archive, err := server.Ask(ctx, http.MethodPost, "/snapshots?output=1")
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	known, _, err := knownOf(ctx, func() (*snapshots.Reader, error) { return snapshots.NewReader(archive) })
	if err != nil {
		return nil, fmt.Errorf("answer of the server: %w", err)
	}
	return known, nil
}

// knownOf reads an archive, and when it was made.
func knownOf(ctx context.Context, open opener) (*recovery.Known, time.Time, error) {
	r, err := open()
	if err != nil {
		return nil, time.Time{}, err
	}
	known := &recovery.Known{At: r.Manifest.Checkpoint, States: recovery.States{}}
	return known, r.Manifest.Time, r.EachState(ctx, known.States.Add)
}

// snapshot returns the states of the snapshot and of the file of tombstones.
func (c *recoverCmd) snapshot(p *process) (*recovery.Known, error) {
	known, until, err := c.states(p, c.Snapshot)
	if err != nil {
		return nil, err
	}
	if c.Tombstones != "" {
		said, err := readTombstones("--tombstones", c.Tombstones)
		if err != nil {
			return nil, err
		}
		if !lineage.Share(said.Histories, known.At.Histories) {
			return nil, fmt.Errorf("--tombstones: %s is of another registry than the snapshot: they share no history", cli.Printable(c.Tombstones))
		}
		for _, d := range said.Removals {
			known.States.Add(readmodel.State{Data: d})
		}
		if said.Time.After(until) {
			until = said.Time
		}
	}
	_, err = fmt.Fprintf(p.stdout, "removals after %s are unknown: whoever was delisted since is listed again until the backend publishes everything once more\n",
		until.UTC().Format(time.RFC3339))
	return known, err
}

// states reads an archive, and when it was made.
func (c *recoverCmd) states(p *process, name string) (known *recovery.Known, made time.Time, err error) {
	err = c.read(p, name, func(ctx context.Context, open opener) (err error) {
		if known, made, err = knownOf(ctx, open); err != nil {
			return unusable(name, err)
		}
		return nil
	})
	return known, made, err
}

func (c *recoverCmd) recover(p *process, stream leader.Stream, known *recovery.Known) error {
	nc, options := stream.JS.Conn(), recovery.Options{NewHistory: c.NewHistory, Adopt: c.Adopt}
	plan, err := recovery.Compare(p.ctx, stream, known, options)
	if err != nil {
		return c.failed(nc, err)
	}
	if plan.Missing && !c.CreateStream && !c.DryRun {
		return fmt.Errorf("broker at %s: it has no stream %s; create it with --create-stream, or correct --stream", c.Addresses(), c.Stream)
	}
	if err := c.report(p.stdout, plan); err != nil || c.DryRun {
		return err
	}
	if len(plan.Changes) > 0 || plan.Begins {
		if err := c.permitted(p); err != nil {
			return err
		}
	}
	if plan.Missing {
		if _, err := stream.JS.CreateStream(p.ctx, c.newStream.config(stream.Name)); err != nil {
			return fmt.Errorf("make stream %s: %w; correct --stream or --stream-replicas", stream.Name, err)
		}
		if plan, err = recovery.Compare(p.ctx, stream, known, options); err != nil {
			return c.failed(nc, err)
		}
	}
	if err := c.publish(p, stream, known, plan, options); err != nil {
		return c.failed(nc, err)
	}
	if c.Snapshot != "" {
		return nil
	}
	return c.await(p)
}

func (c *recoverCmd) failed(nc *nats.Conn, err error) error {
	var foreign *recovery.ForeignError
	switch {
	case errors.As(err, &foreign), errors.Is(err, natserr.ErrRefused):
		return err
	case nc.IsConnected():
		return fmt.Errorf("%w; run the same command again", err)
	}
	return fmt.Errorf("broker at %s: connection lost: %w; run the same command again", c.Addresses(), err)
}

// report prints what is about to be done.
func (c *recoverCmd) report(w io.Writer, plan *recovery.Plan) error {
	n := plan.Counts()
	what := "the stream's history goes on"
	switch {
	case plan.Missing:
		what = "the stream is missing"
	case plan.Begins:
		what = "a new history begins"
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
func (c *recoverCmd) publish(p *process, stream leader.Stream, known *recovery.Known, plan *recovery.Plan, o recovery.Options) error {
	published := 0
	for range rounds {
		progress := cli.NewProgress(p.stderr, "publishing", "events")
		progress.Set(0, int64(len(plan.Changes)))
		n, conflicts, err := recovery.Publish(p.ctx, stream, plan, func() { progress.Add(1) })
		if err != nil {
			return err
		}
		if published += n; conflicts == 0 {
			_, err := fmt.Fprintf(p.stdout, "published: %d\n", published)
			return err
		}
		o.NewHistory = o.NewHistory && plan.Begins
		if plan, err = recovery.Compare(p.ctx, stream, known, o); err != nil {
			return err
		}
	}
	return errors.New("the backend publishes on the same subjects all the time")
}

// await waits until the server goes on and has read everything, for noticedWithin after its last
// progress.
func (c *recoverCmd) await(p *process) error {
	var was admin.Projection
	for moved := time.Now(); ; {
		now, err := projectionAt(p.ctx, c.AdminFlags)
		switch {
		case err != nil:
			return fmt.Errorf("everything is published, and the server does not answer: %w", err)
		case now.Frozen == nil && !now.Rewound && now.Unpublished != nil && *now.Unpublished == 0:
			_, err := fmt.Fprintln(p.stdout, "the server has nothing more that the stream lacks")
			return err
		case time.Since(moved) < noticedWithin:
		case now.Frozen != nil:
			return fmt.Errorf("everything is published, and the server is still frozen (%s); see whether it follows the stream at --nats-url", *now.Frozen)
		default:
			return errors.New("everything is published, and the server has not read it yet; run the same command again, or see unpublished and rewound at /projection")
		}
		if now.Checkpoint != was.Checkpoint {
			was, moved = now, time.Now()
		}
		if !pause.For(p.ctx, noticedWithin/100) {
			return p.ctx.Err()
		}
	}
}
