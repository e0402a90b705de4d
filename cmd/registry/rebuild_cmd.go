package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/registry/httpapi"
)

// rebuildCmd asks the running server for a new read model.
type rebuildCmd struct {
	AcceptStream bool `help:"Take the stream as it is now, be it another one or a new one: the only way out of most kinds of being frozen. A missing stream is created."`
	Yes          bool `help:"Go on although a list loses more than a tenth of its entries, or the memory limit looks too low for two read models."`
	adminFlags
}

// Help is what registry rebuild --help says beyond the flags.
func (rebuildCmd) Help() string {
	return "The running server builds a read model from the start of the stream beside the one that it serves, and puts it in its place once it " +
		"has caught up. Readers notice nothing. The replaced store is kept in the data directory as registry.db.replaced-<time>. " +
		"Interrupted, by ctrl-C, say, or refused, it leaves everything as it was."
}

// Run shows the progress and prints what the read model was and is.
func (c *rebuildCmd) Run(p *process) error {
	group, ctx := errgroup.WithContext(p.ctx)
	ctx, done := context.WithCancel(ctx)
	var rebuilt httpapi.Rebuilt
	group.Go(func() (err error) {
		defer done()
		rebuilt, err = c.ask(p.ctx)
		return err
	})
	group.Go(func() error {
		c.watch(ctx, p.stderr)
		return nil
	})
	if err := group.Wait(); p.ctx.Err() != nil {
		return errors.New("interrupted: the rebuild is given up, the read model stays as it was")
	} else if err != nil {
		return fmt.Errorf("not rebuilt: %w", err)
	}
	_, err := io.WriteString(p.stdout, summaryOf(rebuilt))
	return err
}

func (c *rebuildCmd) ask(ctx context.Context) (r httpapi.Rebuilt, err error) {
	body, err := c.adminFlags.ask(ctx, http.MethodPost, fmt.Sprintf("/rebuild?accept-stream=%t&yes=%t", c.AcceptStream, c.Yes))
	if err != nil {
		return r, err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&r); err != nil {
		return r, fmt.Errorf("answer of the server: %w", err)
	}
	return r, nil
}

// watch shows how far the rebuild is until ctx ends. That it cannot be seen is no failure.
func (c *rebuildCmd) watch(ctx context.Context, w io.Writer) {
	if !isTerminal(w) {
		return
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	shown := newBar(w, "rebuilding", 0, false)
	defer shown.finish()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p, err := projectionAt(ctx, c.adminFlags); err == nil && p.Rebuilding != nil && p.Rebuilding.Total > 0 {
			shown.set(int64(p.Rebuilding.Done), int64(p.Rebuilding.Total))
		}
	}
}

// projectionAt is the server's /projection.
func projectionAt(ctx context.Context, f adminFlags) (p httpapi.Projection, err error) {
	body, err := f.ask(ctx, http.MethodGet, "/projection")
	if err != nil {
		return p, err
	}
	defer body.Close()
	return p, json.NewDecoder(body).Decode(&p)
}

// summaryOf is what rebuild prints.
func summaryOf(r httpapi.Rebuilt) string {
	var s strings.Builder
	for _, m := range []struct {
		when  string
		state httpapi.ModelState
	}{{"before", r.Before}, {"after ", r.After}} {
		e := m.state.Entries
		fmt.Fprintf(&s, "%s  scammers %d, servers %d, legit %d; checkpoint %d of stream %s, digest %s\n",
			m.when, e.Scammers, e.Servers, e.Legit, m.state.Checkpoint, printable(m.state.StreamEpoch), m.state.Digest)
	}
	fmt.Fprintf(&s, "rebuilt from %s in %.1f s; the replaced store is %s in the data directory\n", count(int(r.Events), "event"), r.Seconds, r.Aside)
	if n := len(r.SubjectsWithoutValidEvent); n > 0 {
		const most = 10
		fmt.Fprintf(&s, "%s without a valid event in the stream, whose last state is lost (publish it again): %s\n",
			count(n, "subject"), printable(strings.Join(r.SubjectsWithoutValidEvent[:min(n, most)], ", ")))
	}
	return s.String()
}
