package main

import (
	"bytes"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
)

// startWaiting starts a server with a request under way that takes two seconds: it asks for a sequence
// that does not come. The status of its answer arrives on the channel, 0 if it was cut off.
func startWaiting(t *testing.T) (*program, <-chan int) {
	t.Helper()
	p := startProgram(t)
	status := make(chan int, 1)
	go func() {
		a, _ := registrytest.Ask(t.Context(), p.HTTP+"/api/scammers", http.Header{"Registry-Min-Sequence": {"1000000"}})
		status <- a.Status
	}()

	p.until("the request waits", func() bool {
		_, body, err := ask(p.Admin + "/metrics")
		return err == nil && bytes.Contains(body, []byte("\nregistry_http_sequence_waiters 1\n"))
	})
	return p, status
}

// untilRefused waits until the public listener accepts no connection any more.
func (p *program) untilRefused() {
	p.t.Helper()
	p.until("no connection is accepted", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.HTTP, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// TestFirstSignalDrains: the first signal lets the request under way be answered, takes no new ones, and
// saves everything. A signal that arrives twice at once, for the process and for its group, is one.
// SIGHUP is ignored.
func TestFirstSignalDrains(t *testing.T) {
	t.Parallel()
	p, status := startWaiting(t)
	p.Signal(syscall.SIGHUP)
	p.Signal(syscall.SIGTERM)
	p.Signal(syscall.SIGTERM)
	p.untilRefused()
	require.Equal(t, http.StatusServiceUnavailable, <-status, "answer to the request under way")
	require.Equal(t, exitOK, p.State().ExitCode())
	require.NoError(t, p.WaitFor(t.Context(), "stopped; everything is saved"))
}

// TestSecondSignalEndsAtOnce: a second signal ends the process while it drains.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p, status := startWaiting(t)
	p.Signal(syscall.SIGINT)
	p.untilRefused()

	// Until it is no longer taken for the first.
	again := time.NewTicker(sameSignalWithin / 5)
	defer again.Stop()
	for ended := false; !ended; {
		select {
		case <-again.C:
			p.Signal(syscall.SIGINT)
		case <-p.Ended():
			ended = true
		}
	}
	require.Equal(t, exitFailed, p.State().ExitCode())
	<-status // on a slow machine its two seconds may have ended before
}
