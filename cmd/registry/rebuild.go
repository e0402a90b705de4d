package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events/pause"
	"example.org/registry/httpapi/admin"
)

// rebuildCmd asks the running server for a new read model.
type rebuildCmd struct{ cli.AdminFlags }

func (rebuildCmd) Help() string {
	return "The running server builds a read model from the start of the stream beside the one that it serves, and swaps it in once it has caught up. Lists and checks are answered meanwhile; after the swap, ranked search is not ready until its new index is. " +
		"It is refused where the stream lacks states that the server knows: registry recover comes first. If it is interrupted or refused, everything stays as it was."
}

// Run asks for the rebuild, shows its progress, and prints the read model's state before and after.
func (c *rebuildCmd) Run(p *process) error {
	showing := task.Go(p.ctx, func(ctx context.Context) error {
		c.showProgress(ctx, p.stderr)
		return nil
	})
	var rebuilt admin.Rebuilt
	err := c.AskJSON(p.ctx, http.MethodPost, "/rebuild", &rebuilt)
	_ = showing.Stop() // the function returns no error
	if err != nil {
		return fmt.Errorf("not rebuilt: %w", err)
	}

	_, err = fmt.Fprintf(p.stdout, "before  %s\nafter   %s\nrebuilt from %s in %.1f s\n",
		describeModel(rebuilt.Before), describeModel(rebuilt.After), cli.Count(int(rebuilt.Events), "event"), rebuilt.Seconds)
	return err
}

// showProgress shows the rebuild's progress on a terminal until ctx ends. It ignores errors.
func (c *rebuildCmd) showProgress(ctx context.Context, w io.Writer) {
	if !cli.IsTerminal(w) {
		return
	}

	shown := cli.NewProgress(w, "rebuilding", "events")
	for pause.For(ctx, 200*time.Millisecond) {
		var p admin.Projection
		err := c.AskJSON(ctx, http.MethodGet, "/projection", &p)
		isRebuilding := err == nil && p.Rebuilding != nil
		if isRebuilding && p.Rebuilding.Total > 0 { // the total is 0 until it is known
			shown.Set(int64(p.Rebuilding.Done), int64(p.Rebuilding.Total))
		}
	}
}

func describeModel(m admin.ModelState) string {
	return fmt.Sprintf("%s; checkpoint %d of stream %s, digest %s", m.Entries, m.Checkpoint, cli.Printable(m.Epoch), m.Digest)
}
