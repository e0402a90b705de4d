package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/pause"
)

const (
	// readyWithin bounds one request: a health check that hangs is a failed one.
	readyWithin = 5 * time.Second
	// readyEvery is the time between two requests with --wait.
	readyEvery = 200 * time.Millisecond
)

// readyCmd queries a running server. /readyz needs no token.
type readyCmd struct {
	AdminAddr cli.Address   `default:"127.0.0.1:8081" help:"Operators' listener of the running server."`
	Wait      time.Duration `default:"0s" help:"Try for this long, also while no server is there yet. 0: once."`
}

// Run asks until the server is ready or the time is up. It prints "ready" and the server's caution, if any.
func (c *readyCmd) Run(p *process) error {
	end := time.Now().Add(c.Wait)
	for {
		caution, err := c.askServer(p.ctx)
		if err == nil {
			_, err = fmt.Fprintln(p.stdout, "ready"+caution)
			return err
		}
		isTimeUp := time.Until(end) <= readyEvery
		if isTimeUp || !pause.For(p.ctx, readyEvery) {
			return fmt.Errorf("not ready: %w", err)
		}
	}
}

// askServer makes one request. A ready server answers "ok", or "ok, but frozen: …": the rest is the caution.
func (c *readyCmd) askServer(ctx context.Context) (caution string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	body, err := cli.AdminFlags{AdminAddr: c.AdminAddr}.Ask(ctx, http.MethodGet, "/readyz")
	if err != nil {
		return "", err
	}
	defer body.Close()

	text, err := io.ReadAll(io.LimitReader(body, 1<<10))
	return cli.Printable(strings.TrimSpace(strings.TrimPrefix(string(text), "ok"))), err
}
