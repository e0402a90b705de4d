package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/projector/rejected"
)

// rejectedCmd manages rejected events.
type rejectedCmd struct {
	List  rejectedListCmd  `cmd:"" help:"Show what was rejected, when and why."`
	Retry rejectedRetryCmd `cmd:"" help:"Publish rejected events again, if their revisions win against what is known of their subjects."`
	Purge rejectedPurgeCmd `cmd:"" help:"Erase copies of rejected events."`
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

// rejectedRetryCmd publishes rejected events again.
type rejectedRetryCmd struct {
	Sequences []uint64 `arg:"" name:"SEQUENCE" help:"Sequences of rejected events, as rejected list shows them."`
	rejectedFlags
}

// Help returns the help beyond the flags.
func (rejectedRetryCmd) Help() string {
	return "For events that a server rejected because it was too old or misconfigured. The server decides about each of them again, and rejects it again " +
		"if nothing has changed. An event is not published if its revision does not win against what the stream has on its subject, " +
		"or if it cannot be read and anything newer is there, " +
		"nor if its copy was cut at 64 KiB."
}

// Run prints the outcome of each.
func (c *rejectedRetryCmd) Run(p *process) error {
	return c.with(p, func(ctx context.Context, r *rejected.Events) error {
		failed := 0
		for _, seq := range c.Sequences {
			now, err := r.Retry(ctx, seq)
			if err != nil {
				failed++
				fmt.Fprintf(p.stderr, "%d: %s\n", seq, cli.Printable(err.Error()))
				continue
			}
			if _, err := fmt.Fprintf(p.stdout, "%d: published again at sequence %d\n", seq, now); err != nil {
				return err
			}
		}
		if failed > 0 {
			return fmt.Errorf("%d of %s not published again", failed, cli.Count(len(c.Sequences), "event"))
		}
		return nil
	})
}

// rejectedPurgeCmd deletes copies of rejected events.
type rejectedPurgeCmd struct {
	Subjects []string `arg:"" name:"SUBJECT" help:"An event's subject (registry.scammers.x, or with wildcards registry.scammers.*), which erases every copy of its events, or a subject of the copies (registry-rejected.>, registry-rejected.EPOCH.SEQUENCE)."`
	rejectedFlags
}

// Help returns the help beyond the flags.
func (rejectedPurgeCmd) Help() string {
	return "The events stay in the stream: a rebuild, or a server with an empty data directory, finds them again and copies them again. " +
		"To end that, publish a good event on the subject, then erase what is before it: nats stream purge REGISTRY --subject SUBJECT --keep 1 " +
		"(a registry.entry.delisted or registry.donation.removed does both). On a subject that never had a good event leave out --keep 1."
}

// Run prints how many copies were deleted.
func (c *rejectedPurgeCmd) Run(p *process) error {
	for _, subject := range c.Subjects {
		if !strings.HasPrefix(subject, events.RejectedPrefix) && !strings.HasPrefix(subject, "registry.") {
			return cli.Usagef("SUBJECT: %s is neither an event's subject nor one of %s>", cli.Printable(subject), events.RejectedPrefix)
		}
		if err := rejected.CheckPattern(subject); err != nil {
			return cli.Usagef("SUBJECT: %s: %w", cli.Printable(subject), err)
		}
	}
	return c.with(p, func(ctx context.Context, r *rejected.Events) error {
		for _, subject := range c.Subjects {
			n, err := r.Purge(ctx, subject)
			if err != nil {
				return fmt.Errorf("%s: %w", cli.Printable(subject), err)
			}
			copies := "copies"
			if n == 1 {
				copies = "copy"
			}
			if _, err := fmt.Fprintf(p.stdout, "%s: %d %s erased\n", cli.Printable(subject), n, copies); err != nil {
				return err
			}
		}
		return nil
	})
}

// rejectedFlags select the stream whose rejected events a command manages.
type rejectedFlags struct{ cli.StreamFlags }

// with connects, calls do, and closes the connection.
func (f rejectedFlags) with(p *process, do func(context.Context, *rejected.Events) error) error {
	if err := f.Check(); err != nil {
		return err
	}
	nc, js, err := f.Open(p.ctx, "registry rejected", nil)
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
