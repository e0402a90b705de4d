package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// verifyReads is how often a record that differs is read again before it is named.
const verifyReads = 3

// verifyCmd compares a running server with a replay of its stream.
type verifyCmd struct {
	brokerFlags
	adminFlags
}

// Help is what registry verify --help says beyond the flags.
func (verifyCmd) Help() string {
	return "The stream is replayed, in this process, into an empty read model, which is brought to the very sequence at which the server " +
		"lists its records; so it is right while events arrive. What differs is read again twice before it is named. It takes as much memory as the server's read model, " +
		"and changes nothing anywhere. Exit status 1 when anything differs."
}

// Run prints how many records were compared, and those that differ.
func (c *verifyCmd) Run(p *process) error {
	if err := c.brokerFlags.check(); err != nil {
		return err
	}
	nc, _, err := c.reach(p.ctx, "registry verify")
	if err != nil {
		return err
	}
	defer nc.Close()
	r := startReplay(nc, string(c.Stream))
	defer r.stop()
	if err := r.catchUp(p.ctx, p.stderr); err != nil {
		return plainly(p.ctx, err)
	}
	found, err := c.compare(p.ctx, r)
	if err != nil {
		return plainly(p.ctx, err)
	}
	return c.tell(p.ctx, p.stdout, found)
}

// plainly puts a plain word in the place of what ctrl-C did to err.
func plainly(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// tell prints the findings; the error is that there are any.
func (c *verifyCmd) tell(ctx context.Context, w io.Writer, found findings) error {
	if len(found.differ) == 0 {
		_, err := fmt.Fprintf(w, "%s compared at sequence %d: no difference; digest %s\n",
			count(found.records, "record"), found.sequence, found.digest)
		return err
	}
	if err := c.tellSubjects(ctx, w, found.differ); err != nil {
		return err
	}
	return fmt.Errorf("%d of %s differ at sequence %d: rebuild the read model (registry rebuild)",
		len(found.differ), count(found.records, "record"), found.sequence)
}

func (c *verifyCmd) tellSubjects(ctx context.Context, w io.Writer, differ map[string]string) error {
	var lost map[string]bool
	if p, err := projectionAt(ctx, c.adminFlags); err == nil { // it only explains
		lost = setOf(p.SubjectsWithoutValidEvent)
	}
	for _, subject := range slices.Sorted(maps.Keys(differ)) {
		line := printable(subject) + ": " + differ[subject]
		if lost[subject] {
			line += " (the stream has no valid event of it any more; publish one)"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func setOf(texts []string) map[string]bool {
	set := map[string]bool{}
	for _, t := range texts {
		set[t] = true
	}
	return set
}

// findings are the outcome of a comparison.
type findings struct {
	records  int // compared, those that only one side has included
	sequence uint64
	digest   string
	differ   map[string]string // what is wrong, by subject
}

// compare reads the server's records until what differs differs every time.
func (c *verifyCmd) compare(ctx context.Context, r *replay) (found findings, err error) {
	for read := range verifyReads {
		now, err := c.compareOnce(ctx, r)
		if err != nil {
			return findings{}, err
		}
		if read > 0 {
			maps.DeleteFunc(now.differ, func(subject, _ string) bool { return found.differ[subject] == "" })
		}
		if found = now; len(found.differ) == 0 {
			break
		}
	}
	return found, nil
}

// compareOnce holds the replay where it stands, asks for the server's records there or further, and lets the
// replay go on to exactly where they were taken.
func (c *verifyCmd) compareOnce(ctx context.Context, r *replay) (findings, error) {
	at := r.projector.Hold(0)
	defer r.projector.Release()
	list, err := c.records(ctx, at.Sequence)
	if err != nil {
		return findings{}, err
	}
	defer list.close()
	if list.head.StreamEpoch != at.Stream.Epoch {
		return findings{}, fmt.Errorf("the server follows another stream: epoch %s, not %s; correct --nats-url or --admin-addr",
			printable(list.head.StreamEpoch), at.Stream.Epoch)
	}
	own, err := r.at(ctx, list.head.Sequence)
	if err != nil {
		return findings{}, err
	}
	return list.compare(own)
}
