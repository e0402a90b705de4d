package main

import (
	"bytes"
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

// Help returns the help beyond the flags.
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

	// A server notices within a moment that its stream has been recovered.
	found, err := c.compareWithReplay(p, js)
	for range 10 {
		if !errors.Is(err, errJustRecovered) || !pause.For(p.ctx, time.Second) {
			break
		}
		found, err = c.compareWithReplay(p, js)
	}

	// Events may have arrived meanwhile: a difference counts only if it is found twice.
	if err == nil && len(found.differ) > 0 {
		first := found.differ
		if found, err = c.compareWithReplay(p, js); err == nil {
			maps.DeleteFunc(found.differ, func(subject events.Subject, _ difference) bool {
				_, differedBefore := first[subject]
				return !differedBefore
			})
		}
	}
	if err != nil {
		return cli.Interrupted(p.ctx, err)
	}
	return found.printDifferences(p)
}

var errJustRecovered = errors.New("the server has not noticed yet that the stream has been recovered; try again")

// difference says how a state differs.
type difference string

const (
	onlyStream  difference = "in the stream, not in the server"
	staleServer difference = "the stream's state is the newer one"
	unpublished difference = "the server's state is the newer one, and the stream lacks it"
)

// findings are the outcome of a comparison.
type findings struct {
	server snapshots.Header
	differ map[events.Subject]difference
}

// compareWithReplay reads the server's states, and then the stream.
func (c *verifyCmd) compareWithReplay(p *process, js jetstream.JetStream) (found findings, err error) {
	header, server, err := c.readServer(p.ctx)
	if err != nil {
		return found, err
	}

	dir, err := os.MkdirTemp("", "registry-verify-*")
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	progress := cli.NewProgress(p.stderr, "replaying", "events")
	replay, err := projector.Replay(p.ctx, js, string(c.Stream), dir, func(done, total uint64) { progress.Set(int64(done), int64(total)) })
	if err != nil {
		return found, err
	}
	defer replay.Close()

	// A state that is left in the server's map at the end is not in the stream.
	found = findings{server: header, differ: map[events.Subject]difference{}}
	err = replay.Each(func(m snapshots.Meta, _ int) error {
		return checkEpoch(header, m)
	}, func(state snapshots.State) error {
		e, err := events.Decode(state.Line)
		if err != nil {
			return err
		}
		subject := e.Data.Subject()
		line, known := server[subject]
		delete(server, subject)

		arrivedMeanwhile := state.Sequence > header.Sequence
		isEqual := known && bytes.Equal(line, state.Line)
		if arrivedMeanwhile || isEqual {
			return nil
		}
		found.differ[subject] = onlyStream
		if known {
			found.differ[subject], err = compareStates(line, e.Data)
		}
		return err
	})

	for subject := range server {
		found.differ[subject] = unpublished
	}
	return found, err
}

// checkEpoch returns an error if the server does not follow the stream that was replayed.
func checkEpoch(server snapshots.Header, replayed snapshots.Meta) error {
	if slices.Contains(replayed.Follows, server.Epoch) {
		return errJustRecovered
	}
	if replayed.Epoch != server.Epoch {
		return fmt.Errorf("the server follows another stream: epoch %s, not %s; correct --nats-url or --admin-addr",
			cli.Printable(server.Epoch), cli.Printable(replayed.Epoch))
	}
	return nil
}

// compareStates compares the server's line with the stream's state.
func compareStates(server []byte, stream events.Data) (difference, error) {
	e, err := events.Decode(server)
	if err != nil {
		return "", err
	}
	if events.Compare(e.Data, stream) > 0 {
		return unpublished, nil
	}
	return staleServer, nil
}

// readServer reads the running server's states.
func (c *verifyCmd) readServer(ctx context.Context) (h snapshots.Header, states map[events.Subject][]byte, err error) {
	from, err := c.Ask(ctx, http.MethodGet, "/export")
	if err != nil {
		return h, nil, err
	}
	defer from.Close()

	states = map[events.Subject][]byte{}
	h, err = readStates(from, func(_ uint64, e events.Event) error {
		line, err := snapshots.EncodeState(e.Data)
		states[e.Data.Subject()] = line
		return err
	})
	if err != nil {
		return h, nil, explainSource("", err)
	}
	return h, states, nil
}

// printDifferences prints the findings. If there are any, it returns an error.
func (f findings) printDifferences(p *process) error {
	if len(f.differ) == 0 {
		_, err := fmt.Fprintf(p.stdout, "%s compared at sequence %d: no difference; digest %s\n",
			cli.Count(f.server.Count, "state"), f.server.Sequence, f.server.Digest)
		return err
	}

	remedy := "publish what the stream lacks (registry recover)"
	subjects := slices.SortedFunc(maps.Keys(f.differ), func(a, b events.Subject) int { return cmp.Compare(a.String(), b.String()) })
	for _, subject := range subjects {
		if f.differ[subject] != unpublished {
			remedy = "rebuild the read model (registry rebuild)"
		}
		if _, err := fmt.Fprintf(p.stdout, "%s: %s\n", cli.Printable(subject.String()), f.differ[subject]); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d of %s differ at sequence %d: %s", len(f.differ), cli.Count(f.server.Count, "state"), f.server.Sequence, remedy)
}
