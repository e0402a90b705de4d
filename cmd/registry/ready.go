package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
)

// readyWithin bounds the request: a health check that hangs is a failed one.
const readyWithin = 5 * time.Second

// readyCmd asks a running server. /readyz needs no token.
type readyCmd struct {
	AdminAddr cli.Address `default:"127.0.0.1:8081" help:"Operators' listener of the running server."`
}

// Run prints "ready", or returns the reason as the error.
func (c *readyCmd) Run(p *process) error {
	ctx, cancel := context.WithTimeout(p.ctx, readyWithin)
	defer cancel()
	body, err := cli.AdminFlags{AdminAddr: c.AdminAddr}.Ask(ctx, http.MethodGet, "/readyz")
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	defer body.Close()
	_, err = fmt.Fprintln(p.stdout, "ready")
	return err
}
