package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
)

// startAnswering starts a server with a request under way, for /api/status, whose probe gets its answer by release. The status of
// the server's answer arrives on the channel, 0 if it was cut off.
func startAnswering(t *testing.T) (p *program, status <-chan int, release func()) {
	t.Helper()
	isProbed := make(chan struct{})
	released, release := context.WithCancel(t.Context())
	guard := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(isProbed)
		<-released.Done()
	}))
	t.Cleanup(guard.Close)
	t.Cleanup(release)

	p = startProgram(t, "--guard-url="+guard.URL)
	answered := make(chan int, 1)
	go func() {
		a, _ := registrytest.Ask(t.Context(), p.HTTP+"/api/status", nil)
		answered <- a.Status
	}()
	<-isProbed
	return p, answered, release
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
// saves everything. SIGHUP is ignored.
func TestFirstSignalDrains(t *testing.T) {
	t.Parallel()
	p, status, release := startAnswering(t)
	p.Signal(syscall.SIGHUP)
	p.Signal(syscall.SIGTERM)
	p.untilRefused()
	release()
	require.Equal(t, http.StatusOK, <-status, "answer to the request under way")
	require.Equal(t, exitOK, p.State().ExitCode())
	require.NoError(t, p.WaitFor(t.Context(), "stopped; everything is saved"))
}

// TestSecondSignalEndsAtOnce: a second signal ends the process while it drains.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p, _, _ := startAnswering(t)
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
}

// TestSameSignal: a signal that arrives twice at once, for the process and for its group, is one.
func TestSameSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		signals := make(chan os.Signal)
		go obeySignals(signals, stop)
		signals <- syscall.SIGTERM
		time.Sleep(sameSignalWithin)
		signals <- syscall.SIGTERM // one more would end this process
		close(signals)
		require.ErrorIs(t, ctx.Err(), context.Canceled)
	})
}
