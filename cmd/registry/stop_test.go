package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// waiting starts a server with a request under way that takes two seconds: it asks for a sequence
// that does not come. The status of its answer arrives on the channel, 0 if it was cut off.
func waiting(t *testing.T) (*child, logLine, <-chan int) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c, err := startChild(binary, dir, filepath.Join(dir, "log"), os.Environ(), "--data-dir="+filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.end(os.Kill) })
	line, ok := c.await("ready")
	if !ok {
		t.Fatal("server did not become ready")
	}
	status := make(chan int, 1)
	go func() { status <- askFor(line.HTTP, "1000000") }()
	for end := time.Now().Add(patience); ; {
		_, body, err := ask("http://" + line.Admin + "/metrics")
		if err != nil || time.Now().After(end) {
			t.Fatal("the request never began to wait: ", err)
		}
		if bytes.Contains(body, []byte("\nregistry_http_sequence_waiters 1\n")) {
			return c, line, status
		}
	}
}

func askFor(address, sequence string) int {
	request, err := http.NewRequest(http.MethodGet, "http://"+address+"/api/scammers", nil)
	if err != nil {
		return 0
	}
	request.Header.Set("Registry-Min-Sequence", sequence)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
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
	c, line, status := waiting(t)
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	refused(t, line.HTTP)
	if got := <-status; got != http.StatusServiceUnavailable {
		t.Errorf("the request under way got %d", got)
	}
	<-c.ended
	if got := c.cmd.ProcessState.ExitCode(); got != 0 {
		t.Errorf("exit status %d", got)
	}
}

// SIGHUP is ignored with a line in the log; an orderly stop logs one.
func TestHangupIsIgnored(t *testing.T) {
	t.Parallel()
	c, line, _ := waiting(t)
	if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.await("SIGHUP is ignored: flags and files are read at start alone; restart to change them"); !ok {
		t.Fatal("no line about SIGHUP")
	}
	if status, _, err := ask("http://" + line.Admin + "/readyz"); status != http.StatusOK || err != nil {
		t.Errorf("after SIGHUP: %d, %v", status, err)
	}
	if status := c.end(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if _, ok := c.await("stopped; everything is saved"); !ok {
		t.Error("no line about the stop")
	}
}

// A second signal ends the process while it drains.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	c, line, status := waiting(t)
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	refused(t, line.HTTP)
	again := time.NewTicker(oneSignal / 5) // until it is no longer taken for the first
	defer again.Stop()
	for ended := false; !ended; {
		select {
		case <-again.C:
			_ = c.cmd.Process.Signal(syscall.SIGINT) // it may have ended
		case <-c.ended:
			ended = true
		}
	}
	if got := c.cmd.ProcessState.ExitCode(); got != exitFailed {
		t.Errorf("exit status %d", got)
	}
	<-status // on a slow machine its two seconds may have ended before
}

// A signal that arrives twice at once, for the process and for its group, is one.
func TestSignalToProcessAndGroup(t *testing.T) {
	t.Parallel()
	c, _, status := waiting(t)
	for range 2 {
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-status; got != http.StatusServiceUnavailable {
		t.Errorf("the request under way got %d", got)
	}
	<-c.ended
	if got := c.cmd.ProcessState.ExitCode(); got != 0 {
		t.Errorf("exit status %d", got)
	}
}

// TestStopUnderLoad: SIGTERM while readers ask over kept connections. Every request on a connection
// that the server had answered on is answered, with 200; only new connections are refused.
func TestStopUnderLoad(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c, err := startChild(binary, dir, filepath.Join(dir, "server.log"), os.Environ(), "--demo", "--data-dir="+filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.end(os.Kill) })
	line, ok := c.await("ready")
	if !ok {
		t.Fatal("server did not become ready")
	}
	var answered atomic.Int64
	warm := make(chan struct{}, 8)
	var readers sync.WaitGroup
	for range cap(warm) {
		readers.Go(func() { readUntilRefused(t, "http://"+line.HTTP+"/api/scammers?limit=2", &answered, warm) })
	}
	for range cap(warm) {
		<-warm
	}
	if status := c.end(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	readers.Wait()
	t.Logf("%d requests answered", answered.Load())
}

// readUntilRefused asks over one connection at a time until a new one is refused.
func readUntilRefused(t *testing.T, url string, answered *atomic.Int64, warm chan<- struct{}) {
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1, DisableCompression: true}}
	defer client.CloseIdleConnections()
	for i := 0; ; i++ {
		reused := false
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, url, nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := client.Do(req)
		if err != nil && !reused && i > 0 {
			return // refused, or reset before the server accepted it
		}
		if err != nil {
			t.Errorf("request %d of a reader: %v", i, err)
			return
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("request %d of a reader: %d, %v", i, resp.StatusCode, err)
			return
		}
		answered.Add(1)
		if i == 100 {
			warm <- struct{}{}
		}
	}
}
