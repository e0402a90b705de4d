package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
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
	target, err := adminFlags{AdminAddr: c.AdminAddr}.url()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(p.ctx, http.MethodGet, target+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	client := &http.Client{Timeout: readyWithin, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("not ready: is the server running? %w", err)
	}
	defer answer.Body.Close()
	reason, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10)) // a cut reason is still one
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", strings.TrimSpace(string(reason)))
	}
	_, err = fmt.Fprintln(p.stdout, "ready")
	return err
}
