package main

import (
	"bytes"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.org/registry/cmd/registry/registrytest"
	"github.com/stretchr/testify/require"
)

// waiting starts a server with a request under way that takes two seconds: it asks for a sequence
// that does not come. The status of its answer arrives on the channel, 0 if it was cut off.
func waiting(t *testing.T) (*program, <-chan int) {
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

// refused waits until an address accepts no connection any more.
func refused(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatal("still accepts connections")
}

// The first signal lets the requests under way be answered, and takes no new ones.
func TestFirstSignalDrains(t *testing.T) {
	t.Parallel()
	p, status := waiting(t)
	p.Signal(syscall.SIGTERM)
	refused(t, strings.TrimPrefix(p.HTTP, "http://"))
	if got := <-status; got != http.StatusServiceUnavailable {
		t.Errorf("the request under way got %d", got)
	}
	if got := p.State().ExitCode(); got != 0 {
		t.Errorf("exit status %d", got)
	}
}

// SIGHUP is ignored with a line in the log; an orderly stop logs one.
func TestHangupIsIgnored(t *testing.T) {
	t.Parallel()
	p, _ := waiting(t)
	p.Signal(syscall.SIGHUP)
	require.NoError(t, p.WaitFor(t.Context(), "SIGHUP is ignored: flags and files are read at start alone; restart to change them"))
	if status, _, err := ask(p.Admin + "/readyz"); status != http.StatusOK || err != nil {
		t.Errorf("after SIGHUP: %d, %v", status, err)
	}
	p.stop()
	require.NoError(t, p.WaitFor(t.Context(), "stopped; everything is saved"))
}

// A second signal ends the process while it drains.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p, status := waiting(t)
	p.Signal(syscall.SIGINT)
	refused(t, strings.TrimPrefix(p.HTTP, "http://"))
	again := time.NewTicker(oneSignal / 5) // until it is no longer taken for the first
	defer again.Stop()
	for ended := false; !ended; {
		select {
		case <-again.C:
			p.Signal(syscall.SIGINT)
		case <-p.Ended():
			ended = true
		}
	}
	if got := p.State().ExitCode(); got != exitFailed {
		t.Errorf("exit status %d", got)
	}
	<-status // on a slow machine its two seconds may have ended before
}

// A signal that arrives twice at once, for the process and for its group, is one.
func TestSignalToProcessAndGroup(t *testing.T) {
	t.Parallel()
	p, status := waiting(t)
	for range 2 {
		p.Signal(syscall.SIGTERM)
	}
	if got := <-status; got != http.StatusServiceUnavailable {
		t.Errorf("the request under way got %d", got)
	}
	if got := p.State().ExitCode(); got != 0 {
		t.Errorf("exit status %d", got)
	}
}
