package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/httpapi/admin"
)

// rebuildCmd asks the running server for a new read model.
type rebuildCmd struct {
	cli.AdminFlags
}

// Help returns the help beyond the flags.
func (rebuildCmd) Help() string {
	return "The running server builds a read model from the start of the stream beside the one that it serves, and swaps it in once it has caught up. Readers notice nothing. " +
		"It is refused where the stream lacks states that the server knows: registry recover comes first. If it is interrupted or refused, everything stays as it was."
}

// Run shows the progress and prints the state before and after.
func (c *rebuildCmd) Run(p *process) error {
	group, ctx := errgroup.WithContext(p.ctx)
	ctx, done := context.WithCancel(ctx)
	var rebuilt admin.Rebuilt
	group.Go(func() error {
		defer done()
		return c.AskJSON(p.ctx, http.MethodPost, "/rebuild", &rebuilt)
	})
	group.Go(func() error {
		c.showProgress(ctx, p.stderr)
		return nil
	})
	if err := group.Wait(); p.ctx.Err() != nil {
		return errors.New("interrupted: the rebuild was abandoned; the read model is unchanged")
	} else if err != nil {
		return fmt.Errorf("not rebuilt: %w", err)
	}
	_, err := io.WriteString(p.stdout, summaryOf(rebuilt))
	return err
}

// showProgress shows the rebuild's progress until ctx ends. It ignores errors.
func (c *rebuildCmd) showProgress(ctx context.Context, w io.Writer) {
	if !cli.IsTerminal(w) {
		return
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	shown := cli.NewProgress(w, "rebuilding", "events")
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p, err := projectionAt(ctx, c.AdminFlags); err == nil && p.Rebuilding != nil && p.Rebuilding.Total > 0 {
			shown.Set(int64(p.Rebuilding.Done), int64(p.Rebuilding.Total))
		}
	}
}

// projectionAt returns the server's /projection.
func projectionAt(ctx context.Context, f cli.AdminFlags) (p admin.Projection, err error) {
	return p, f.AskJSON(ctx, http.MethodGet, "/projection", &p)
}

// summaryOf returns the output of rebuild.
func summaryOf(r admin.Rebuilt) string {
	var s strings.Builder
	for _, m := range []struct {
		when  string
		state admin.ModelState
	}{{"before", r.Before}, {"after ", r.After}} {
		fmt.Fprintf(&s, "%s  %s; checkpoint %d of stream %s, digest %s\n",
			m.when, m.state.Entries, m.state.Checkpoint, cli.Printable(m.state.Epoch), m.state.Digest)
	}
	fmt.Fprintf(&s, "rebuilt from %s in %.1f s\n", cli.Count(int(r.Events), "event"), r.Seconds)
	return s.String()
}
