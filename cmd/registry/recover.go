package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/publish"
	"example.org/registry/projector"
)

// recoverCmd publishes what the stream has lost.
type recoverCmd struct {
	Sources      []string       `arg:"" optional:"" name:"NAME or FILE" help:"Snapshots and export files, joined: a file if one of this name exists, else a snapshot in the object store. Default: what the running server knows."`
	Into         string         `placeholder:"EPOCH" help:"Publish into the stream with this epoch although it is another registry's."`
	DryRun       bool           `help:"Only compare, and print how much would be published."`
	Yes          bool           `help:"Publish without asking."`
	Stream       cli.StreamName `default:"REGISTRY" help:"Name of the event stream." group:"Broker and stream"`
	CreateStream bool           `help:"Create the stream if the broker has none, such as after its loss."`
	cli.NewStreamFlags
	cli.AdminFlags
	cli.BrokerFlags
}

func (recoverCmd) Help() string {
	return "The way back after the stream was lost, emptied or rewound: publishes every latest state that is newer than the stream's. States of the stream with a greater revision stay, " +
		"so the backend may go on publishing. The stream gets a new epoch, so that every server reads it again and goes on by itself. A stream of another registry is refused. " +
		"If interrupted, run it again. Without a terminal it needs --yes. Takes as much memory as the states, and a key that may update the stream."
}

// Run compares, asks and publishes.
func (c *recoverCmd) Run(p *process) error {
	// A dry run may plan for a missing stream without --create-stream, since it creates nothing.
	recovery := &projector.Recovery{
		Stream: string(c.Stream), Create: c.CreateStream || c.DryRun, Replicas: c.StreamReplicas, History: int(c.StreamHistory), Into: c.Into,
	}
	if err := c.addSources(p, recovery); err != nil {
		return err
	}

	nc, js, err := c.Connect("registry recover")
	if err != nil {
		return err
	}
	defer nc.Close()

	recovery.JetStream = js
	info, plan, err := recovery.Plan(p.ctx)
	if err != nil {
		return c.explainError(err)
	}

	err = c.printPlan(p, info, plan)
	if err != nil || c.DryRun {
		return err
	}
	if err := c.askPermission(p); err != nil {
		return err
	}
	return c.publishStates(p, recovery)
}

// addSources adds all states that may be published.
func (c *recoverCmd) addSources(p *process, recovery *projector.Recovery) error {
	if len(c.Sources) == 0 {
		from, err := c.Ask(p.ctx, http.MethodGet, "/export")
		if err != nil {
			return fmt.Errorf("%w; if no server has a state, name a snapshot", err)
		}
		return addSource(recovery, runningServer, from)
	}

	for _, name := range c.Sources {
		from, err := openStates(p, name, c.BrokerFlags)
		if err != nil {
			return err
		}
		if err := addSource(recovery, name, from); err != nil {
			return err
		}
	}
	return nil
}

// addSource adds the states of a source, and closes it.
func addSource(recovery *projector.Recovery, name string, from io.ReadCloser) error {
	defer from.Close()
	if err := recovery.Add(from); err != nil {
		return explainSource(name, err)
	}
	return nil
}

// printPlan prints how many states are to be published: plan.Sent counts them. info is nil if there is no stream.
func (c *recoverCmd) printPlan(p *process, info *jetstream.StreamInfo, plan publish.Summary) error {
	state := "is missing"
	if info != nil {
		state = fmt.Sprintf("has %d messages", info.State.Msgs)
	}
	_, err := fmt.Fprintf(p.stdout, "the stream %s %s; to publish: %s; %d already there; %d newer in the stream stay\n",
		c.Stream, state, cli.Count(plan.Sent, "state"), plan.Known, plan.Stale)
	return err
}

// askPermission asks the person at the terminal, and returns an error if the answer is no. With --yes it asks
// nobody.
func (c *recoverCmd) askPermission(p *process) error {
	if c.Yes {
		return nil
	}
	stdin, isFile := p.stdin.(*os.File)
	canAsk := isFile && cli.IsTerminal(stdin) && cli.IsTerminal(p.stderr)
	if !canAsk {
		return errors.New("nothing was published; repeat with --yes")
	}

	fmt.Fprint(p.stderr, "publish this? [y/N] ")
	line, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y") {
		return errors.New("nothing was published")
	}
	return nil
}

func (c *recoverCmd) publishStates(p *process, recovery *projector.Recovery) error {
	progress := cli.NewProgress(p.stderr, "publishing", "states")
	recovery.Progress = func(done, total int) { progress.Set(int64(done), int64(total)) }
	sum, err := recovery.Run(p.ctx)
	if err != nil {
		return fmt.Errorf("%w; run the same command again", c.explainError(err))
	}
	_, err = fmt.Fprintf(p.stdout, "published: %d; every server reads the stream again and goes on by itself\n", sum.Sent)
	return err
}

func (c *recoverCmd) explainError(err error) error {
	return fmt.Errorf("broker at %s: %w", c.Addresses(), cli.Advise(err))
}
