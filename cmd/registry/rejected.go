package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/projector"
)

// rejectedCmd shows rejected events.
type rejectedCmd struct {
	List rejectedListCmd `cmd:"" help:"Show what was rejected, when and why."`
}

// rejectedListCmd prints a table of the copies of rejected events.
type rejectedListCmd struct{ cli.StreamFlags }

// Run prints a line for each event, oldest first.
func (c *rejectedListCmd) Run(p *process) error {
	nc, js, err := c.Open(p.ctx, "registry rejected")
	if err != nil {
		return err
	}
	defer nc.Close()
	all, err := projector.ListRejected(p.ctx, js)
	if err != nil {
		return err
	}

	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, r := range all {
		reason := cli.Printable(r.Reason)
		if r.Truncated {
			reason += " (copy cut at 64 KiB)"
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", r.Sequence, r.Time.UTC().Format(time.RFC3339), cli.Printable(r.Subject), reason)
	}
	if err := table.Flush(); err != nil {
		return err
	}

	_, err = fmt.Fprintln(p.stdout, cli.Count(len(all), "rejected event"))
	return err
}
