package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// readyWithin bounds the whole question: a health check that hangs is a failed one.
const readyWithin = 5 * time.Second

// readyCmd asks a running server.
type readyCmd struct {
	AdminAddr address `default:"127.0.0.1:8081" help:"Admin listener of the running server."`
}

// Run prints "ready", or returns the reason as the error.
func (c *readyCmd) Run(p *process) error {
	ctx, cancel := context.WithTimeout(p.ctx, readyWithin)
	defer cancel()
	body, err := adminFlags{AdminAddr: c.AdminAddr}.ask(ctx, http.MethodGet, "/readyz")
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	defer body.Close()
	_, err = fmt.Fprintln(p.stdout, "ready")
	return err
}
