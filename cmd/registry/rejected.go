package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"example.org/registry/events"
	"example.org/registry/projector"
)

// rejectedCmd sees to the stream of rejected events.
type rejectedCmd struct {
	List  rejectedListCmd  `cmd:"" help:"Show what was rejected, when and why."`
	Retry rejectedRetryCmd `cmd:"" help:"Publish rejected events again, where nothing newer is on their subjects."`
	Purge rejectedPurgeCmd `cmd:"" help:"Erase copies of rejected events."`
}

// rejectedListCmd prints the copies as a table.
type rejectedListCmd struct {
	All bool `help:"Also those of other streams that this broker had under the same or another name."`
	brokerFlags
}

// Run prints a line for each, oldest first.
func (c *rejectedListCmd) Run(p *process) error {
	return c.withRejected(p, func(ctx context.Context, r *projector.Rejected) error {
		copies, err := r.List(ctx)
		if err != nil {
			return err
		}
		return c.table(p.stdout, copies, r.Epoch())
	})
}

func (c *rejectedListCmd) table(w io.Writer, copies []projector.Copy, epoch string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	others := 0
	for _, x := range copies {
		if x.Epoch != epoch {
			if others++; !c.All {
				continue
			}
		}
		reason := printable(x.Reason)
		if x.Truncated {
			reason += " (copy cut at 64 KiB)"
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s", x.Sequence, x.Time.UTC().Format(time.RFC3339), printable(x.Subject), reason)
		if c.All {
			fmt.Fprintf(table, "\tstream %s", printable(x.Epoch))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	shown := len(copies)
	if !c.All {
		shown -= others
	}
	line := count(shown, "rejected event")
	if others > 0 && !c.All {
		line += fmt.Sprintf("; %d of other streams, which --all shows", others)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// rejectedRetryCmd publishes rejected events again.
type rejectedRetryCmd struct {
	Sequences []uint64 `arg:"" name:"SEQUENCE" help:"Sequences of rejected events, as rejected list shows them."`
	brokerFlags
}

// Help is what registry rejected retry --help says beyond the flags.
func (rejectedRetryCmd) Help() string {
	return "For events that were rejected by a server that was too old, or configured wrongly: the server decides about each anew, and rejects it again " +
		"if nothing has changed. An event that has anything newer on its subject is not published: that would bring back an older state. " +
		"One of which the copy was cut at 64 KiB cannot be either."
}

// Run says what became of each.
func (c *rejectedRetryCmd) Run(p *process) error {
	return c.withRejected(p, func(ctx context.Context, r *projector.Rejected) error {
		failed := 0
		for _, seq := range c.Sequences {
			now, err := r.Retry(ctx, seq)
			if err != nil {
				failed++
				fmt.Fprintf(p.stderr, "%d: %s\n", seq, printable(err.Error()))
				continue
			}
			if _, err := fmt.Fprintf(p.stdout, "%d: published again at sequence %d\n", seq, now); err != nil {
				return err
			}
		}
		if failed > 0 {
			return fmt.Errorf("%d of %s not published again", failed, count(len(c.Sequences), "event"))
		}
		return nil
	})
}

// rejectedPurgeCmd erases copies.
type rejectedPurgeCmd struct {
	Subjects []string `arg:"" name:"SUBJECT" help:"An event's subject (registry.scammers.x, or with wildcards registry.scammers.*), which erases every copy of its events, or a subject of the copies (registry-rejected.>, registry-rejected.EPOCH.SEQUENCE)."`
	brokerFlags
}

// Help is what registry rejected purge --help says beyond the flags.
func (rejectedPurgeCmd) Help() string {
	return "The events stay in the stream: a rebuild, or a server with an empty data directory, finds them again and copies them again. " +
		"What ends that is a good event on the subject, and then erasing what is before it: nats stream purge REGISTRY --subject SUBJECT --keep 1 " +
		"(a registry.entry.delisted or registry.donation.removed does both). On a subject that never had a good event leave out --keep 1."
}

// Run says how many copies are gone.
func (c *rejectedPurgeCmd) Run(p *process) error {
	for _, subject := range c.Subjects {
		if !strings.HasPrefix(subject, events.RejectedPrefix) && !strings.HasPrefix(subject, "registry.") {
			return usagef("SUBJECT: %s is neither an event's subject nor one of %s>", printable(subject), events.RejectedPrefix)
		}
		if err := projector.CheckPattern(subject); err != nil {
			return usagef("SUBJECT: %s: %w", printable(subject), err)
		}
	}
	return c.withRejected(p, func(ctx context.Context, r *projector.Rejected) error {
		for _, subject := range c.Subjects {
			n, err := r.Purge(ctx, subject)
			if err != nil {
				return fmt.Errorf("%s: %w", printable(subject), err)
			}
			copies := "copies"
			if n == 1 {
				copies = "copy"
			}
			if _, err := fmt.Fprintf(p.stdout, "%s: %d %s erased\n", printable(subject), n, copies); err != nil {
				return err
			}
		}
		return nil
	})
}

// withRejected connects, calls f, and hangs up.
func (f brokerFlags) withRejected(p *process, do func(context.Context, *projector.Rejected) error) error {
	if err := f.check(); err != nil {
		return err
	}
	nc, js, err := f.reach(p.ctx, "registry rejected")
	if err != nil {
		return err
	}
	defer nc.Close()
	r, err := projector.OpenRejected(p.ctx, js, string(f.Stream))
	if err == nil {
		err = do(p.ctx, r)
	}
	return plainly(p.ctx, err)
}
