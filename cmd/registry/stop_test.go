package main

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

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
