package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/events/pause"
	"example.org/registry/projector"
	"example.org/registry/snapshots"
)

// verifyCmd compares a running server with a replay of its stream.
type verifyCmd struct {
	cli.StreamFlags
	cli.AdminFlags
}

func (verifyCmd) Help() string {
	return "Reads the stream from its beginning into an empty model of this process and compares every state with the server's, tombstones too. A state that differs is compared twice, " +
		"since events may arrive meanwhile. Takes as much memory as the server's read model, and changes nothing. Exit status 1 if anything differs."
}

// Run prints the number of compared states, and each state that differs.
func (c *verifyCmd) Run(p *process) error {
	nc, js, err := c.Open(p.ctx, "registry verify")
	if err != nil {
		return err
	}
	defer nc.Close()

	// A server needs a moment to notice that its stream has been recovered, so the command tries again.
	header, found, err := c.compareWithReplay(p, js)
	for attempt := 1; errors.Is(err, errJustRecovered) && attempt < 10; attempt++ {
		pause.For(p.ctx, time.Second)
		header, found, err = c.compareWithReplay(p, js)
	}

	// Events may have arrived meanwhile: a difference counts only if it is found twice.
	if err == nil && len(found) > 0 {
		foundBefore := found
		header, found, err = c.compareWithReplay(p, js)
		maps.DeleteFunc(found, func(subject events.Subject, _ difference) bool { return foundBefore[subject] == "" })
	}
	if err != nil {
		return err
	}
	return printDifferences(p, header, found)
}

var errJustRecovered = errors.New("the server has not noticed yet that the stream has been recovered; try again")

// difference says how a state differs.
type difference string

const (
	onlyStream  difference = "in the stream, not in the server"
	staleServer difference = "the stream's state is the newer one"
	unpublished difference = "the server's state is the newer one, and the stream lacks it"
)

// compareWithReplay reads the server's states, and then the stream. It returns the header of the server's export
// and the states that differ.
func (c *verifyCmd) compareWithReplay(p *process, js jetstream.JetStream) (h snapshots.Header, found map[events.Subject]difference, err error) {
	h, serverStates, err := c.readServer(p.ctx)
	if err != nil {
		return h, nil, err
	}

	dir, err := os.MkdirTemp("", "registry-verify-*")
	if err != nil {
		return h, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	progress := cli.NewProgress(p.stderr, "replaying", "events")
	replay, err := projector.Replay(p.ctx, js, string(c.Stream), dir, func(done, total uint64) { progress.Set(int64(done), int64(total)) })
	if err != nil {
		return h, nil, err
	}
	defer replay.Close()

	// Each recovery gives the stream a new epoch, which follows the earlier ones.
	replayed := replay.Meta()
	if slices.Contains(replayed.Follows, h.Epoch) {
		return h, nil, errJustRecovered
	}
	if replayed.Epoch != h.Epoch {
		return h, nil, fmt.Errorf("the server follows another stream: epoch %s, not %s; correct --nats-url or --admin-addr",
			cli.Printable(h.Epoch), cli.Printable(replayed.Epoch))
	}

	found, err = compareStates(replay, serverStates, h.Sequence)
	return h, found, err
}

// compareStates compares the states of the stream with serverStates, which the server had at checkpoint. It deletes
// each state of the stream from serverStates, so the states that remain are not in the stream.
func compareStates(replay *snapshots.Store, serverStates map[events.Subject]events.Data, checkpoint uint64) (map[events.Subject]difference, error) {
	found := map[events.Subject]difference{}
	err := replay.Each(nil, func(state snapshots.State) error {
		e, err := events.Decode(state.Line)
		if err != nil {
			return err
		}
		subject := e.Data.Subject()
		known := serverStates[subject]
		delete(serverStates, subject)

		arrivedMeanwhile := state.Sequence > checkpoint
		if arrivedMeanwhile {
			return nil
		}
		if known == nil {
			found[subject] = onlyStream
			return nil
		}

		order := events.Compare(known, e.Data)
		if order > 0 {
			found[subject] = unpublished
		}
		if order < 0 {
			found[subject] = staleServer
		}
		return nil
	})

	for subject := range serverStates {
		found[subject] = unpublished
	}
	return found, err
}

// readServer reads the running server's states.
func (c *verifyCmd) readServer(ctx context.Context) (h snapshots.Header, states map[events.Subject]events.Data, err error) {
	from, err := c.Ask(ctx, http.MethodGet, "/export")
	if err != nil {
		return h, nil, err
	}
	defer from.Close()

	states = map[events.Subject]events.Data{}
	h, err = snapshots.Read(from, func(_ uint64, e events.Event) error {
		states[e.Data.Subject()] = e.Data
		return nil
	})
	if err != nil {
		return h, nil, explainSource(runningServer, err)
	}
	return h, states, nil
}

// printDifferences prints the states that differ. If there are any, it returns an error.
func printDifferences(p *process, h snapshots.Header, found map[events.Subject]difference) error {
	if len(found) == 0 {
		_, err := fmt.Fprintf(p.stdout, "%s compared at sequence %d: no difference; digest %s\n", cli.Count(h.Count, "state"), h.Sequence, h.Digest)
		return err
	}

	remedy := "publish what the stream lacks (registry recover)"
	byText := func(a, b events.Subject) int { return cmp.Compare(a.String(), b.String()) }
	for _, subject := range slices.SortedFunc(maps.Keys(found), byText) {
		if found[subject] != unpublished {
			remedy = "rebuild the read model (registry rebuild)"
		}
		if _, err := fmt.Fprintf(p.stdout, "%s: %s\n", cli.Printable(subject.String()), found[subject]); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d of %s differ at sequence %d: %s", len(found), cli.Count(h.Count, "state"), h.Sequence, remedy)
}
