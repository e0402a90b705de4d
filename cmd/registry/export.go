package main

import (
	"fmt"
	"io"
	"net/http"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// exportCmd writes the latest states as events.
type exportCmd struct {
	Source   string `arg:"" optional:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store. Default: the running server's states."`
	Removals bool   `help:"Write tombstones alone, which hold no names: for keeping beside snapshots."`
	Output   string `placeholder:"FILE" help:"Replace this file in one step, once everything is written. -: standard output."`
	cli.AdminFlags
	cli.BrokerFlags
}

func (exportCmd) Help() string {
	return "One CloudEvent a line: the latest state of every subject, tombstones too, with its sequence in the stream. The first line describes the export and the last one ends it; " +
		"a file without its last line is not whole. A snapshot holds the same lines. Publishing them into a stream of the same registry is harmless, since the greatest revision of a subject wins: " +
		"to bring back a stream that was lost, use registry recover."
}

// Run writes the states, and a summary to standard error.
func (c *exportCmd) Run(p *process) (err error) {
	var h snapshots.Header
	if c.Output == "" || c.Output == "-" {
		h, err = c.writeStates(p, p.stdout)
	} else {
		h, err = replaceFile(c.Output, func(to io.Writer) (snapshots.Header, error) { return c.writeStates(p, to) })
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stderr, "exported: %s\n", describeHeader(h))
	return err
}

func (c *exportCmd) writeStates(p *process, to io.Writer) (snapshots.Header, error) {
	from, err := c.openSource(p)
	if err != nil {
		return snapshots.Header{}, err
	}
	defer from.Close()

	write := copyStates
	if c.Removals {
		write = copyRemovals
	}
	h, err := write(from, to)
	if err != nil {
		return h, explainSource(c.Source, err)
	}
	return h, nil
}

func (c *exportCmd) openSource(p *process) (io.ReadCloser, error) {
	if c.Source == runningServer {
		return c.Ask(p.ctx, http.MethodGet, "/export")
	}
	return openStates(p, c.Source, c.BrokerFlags)
}

// copyRemovals is copyStates for tombstones alone. The header of the copy has no checkpoint: a store that is
// restored from it has to read the stream from its beginning.
func copyRemovals(from io.Reader, to io.Writer) (snapshots.Header, error) {
	var tombstones []snapshots.State
	var digest readmodel.Digest
	h, err := snapshots.Read(from, func(sequence uint64, e events.Event) error {
		if !e.Type.Removes() {
			return nil
		}
		digest.Add(readmodel.StateDigest(e.Data))
		line, err := snapshots.EncodeState(e.Data)
		tombstones = append(tombstones, snapshots.State{Sequence: sequence, Line: line})
		return err
	})
	if err != nil {
		return h, err
	}

	// The first line has the count and the digest, so all tombstones are collected before it is written.
	h.Meta = snapshots.Meta{Identity: h.Identity, Digest: digest.String()} // no Sequence
	h.Count = len(tombstones)
	w, err := snapshots.NewWriter(to, h)
	if err != nil {
		return h, err
	}

	for _, state := range tombstones {
		if err := w.Add(state); err != nil {
			return h, err
		}
	}
	return h, w.End()
}
