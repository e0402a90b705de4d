package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/stream"
	"example.org/registry/projector"
)

// rejectedCmd shows rejected events.
type rejectedCmd struct {
	List rejectedListCmd `cmd:"" help:"Show what was rejected, when and why."`
}

// rejectedListCmd prints the copies as a table.
type rejectedListCmd struct {
	All bool `help:"Include events of other streams that this broker has or had."`
	cli.StreamFlags
}

// Run prints a line for each, oldest first.
func (c *rejectedListCmd) Run(p *process) error {
	if err := c.Check(); err != nil {
		return err
	}
	nc, js, err := c.Open(p.ctx, "registry rejected")
	if err != nil {
		return err
	}
	defer nc.Close()
	info, err := stream.Stream{JS: js, Name: string(c.Stream)}.Info(p.ctx)
	if err != nil {
		return cli.Interrupted(p.ctx, err)
	}
	all, err := projector.ListRejected(p.ctx, js)
	if err != nil {
		return cli.Interrupted(p.ctx, err)
	}

	shown := all
	if id := stream.IdentityOf(info); !c.All {
		shown = slices.DeleteFunc(slices.Clone(all), func(r projector.Rejection) bool { return !r.Of(id) })
	}
	return printRejected(p.stdout, shown, len(all)-len(shown))
}

func printRejected(w io.Writer, shown []projector.Rejection, others int) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range shown {
		reason := cell(r.Reason)
		if r.Truncated {
			reason += " (copy cut at 64 KiB)"
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", r.Sequence, r.Time.UTC().Format(time.RFC3339), cell(r.Subject), reason)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	line := cli.Count(len(shown), "rejected event")
	if others > 0 {
		line += fmt.Sprintf("; %d of other streams, which --all shows", others)
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
