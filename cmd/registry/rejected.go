package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/projector/rejected"
)

// rejectedCmd shows rejected events.
type rejectedCmd struct {
	List rejectedListCmd `cmd:"" help:"Show what was rejected, when and why."`
}

// rejectedListCmd prints the copies as a table.
type rejectedListCmd struct {
	All bool `help:"Include events of other streams that this broker has or had, whatever their names, and of histories whose sequences have come again."`
	rejectedFlags
}

// Run prints a line for each, oldest first.
func (c *rejectedListCmd) Run(p *process) error {
	return c.with(p, func(ctx context.Context, r *rejected.Events) error {
		copies, others, err := r.List(ctx)
		if err != nil {
			return err
		}
		return c.table(p.stdout, copies, others)
	})
}

func (c *rejectedListCmd) table(w io.Writer, copies, others []rejected.Copy) error {
	if c.All {
		copies, others = slices.Concat(others, copies), nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, x := range copies {
		reason := cell(x.Reason)
		if x.Truncated {
			reason += " (copy cut at 64 KiB)"
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s", x.Sequence, x.Time.UTC().Format(time.RFC3339), cell(x.Subject), reason)
		if c.All {
			fmt.Fprintf(table, "\thistory %s", cli.Printable(x.Epoch))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	line := cli.Count(len(copies), "rejected event")
	if len(others) > 0 {
		line += fmt.Sprintf("; %d of other streams or histories, which --all shows", len(others))
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// maxCell bounds what a publisher has written of a line, in characters: the longest cell of a column
// decides how wide all lines are.
const maxCell = 160

// cell returns text for a table, with its middle left out if it is long.
func cell(text string) string {
	shown := []rune(cli.Printable(text))
	if len(shown) <= maxCell {
		return string(shown)
	}
	return string(shown[:maxCell/2]) + "…" + string(shown[len(shown)-maxCell/2+1:])
}

// rejectedFlags select the stream whose rejected events a command shows.
type rejectedFlags struct{ cli.StreamFlags }

// with connects, calls do, and closes the connection.
func (f rejectedFlags) with(p *process, do func(context.Context, *rejected.Events) error) error {
	if err := f.Check(); err != nil {
		return err
	}
	nc, js, err := f.Open(p.ctx, "registry rejected")
	if err != nil {
		return err
	}
	defer nc.Close()
	r, err := rejected.Open(p.ctx, js, string(f.Stream))
	if err == nil {
		err = do(p.ctx, r)
	}
	return cli.Interrupted(p.ctx, err)
}
