package serve

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// "ready" is never logged before "listening", however soon the model is there: who starts others by
// the log waits for both.
func TestListeningBeforeReady(t *testing.T) {
	r := project(t)
	r.cfg.HTTPAddr, r.cfg.AdminAddr = "127.0.0.1:0", "127.0.0.1:0"
	var said bytes.Buffer
	r.log = slog.New(slog.NewTextHandler(&said, nil))
	var err error
	if r.listeners, err = listen(r.cfg); err != nil {
		t.Fatal(err)
	}
	defer r.listeners.close()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := r.announce(stopped); err != nil || said.Len() > 0 {
		t.Errorf("before it listens: %q, %v", said.String(), err)
	}
	close(r.listening)
	if err := r.announce(t.Context()); err != nil || !strings.Contains(said.String(), "msg=ready") {
		t.Errorf("once it listens: %q, %v", said.String(), err)
	}
}

// A saved state is shown 10 s after the start at the latest, however long it took to load, up to
// that.
func TestPatience(t *testing.T) {
	const look = 2*time.Second + 500*time.Millisecond // a question without an answer, and the wait before it
	for passed, want := range map[time.Duration]time.Duration{
		0: 7 * time.Second, 3 * time.Second: 4 * time.Second, 5 * time.Second: 2 * time.Second, time.Minute: 2 * time.Second,
	} {
		got := patienceAfter(passed)
		if got != want || passed <= 5*time.Second && passed+got+look > 10*time.Second {
			t.Errorf("after %s: %s", passed, got)
		}
	}
}
