package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A sync that fails once, at the kth of a thread: the store's (fdatasync) or the broker's and those of
// renamed files (fsync). Readers are answered, nothing that was acknowledged is lost, and what starts
// again is what a replay is (promises 3, 4 and 5).
func TestSyncFails(t *testing.T) {
	strace := findStrace(t)
	for _, call := range []string{"fdatasync", "fsync"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			k := newFailing(t)
			k.survive(0)
			injected := 0
			for nth := 1; nth <= 3; nth++ {
				injected += k.failSync(strace, call, nth)
				k.survive(nth)
			}
			if injected == 0 {
				t.Error("no sync ever failed: the test has tested nothing")
			}
			t.Logf("%d failed", injected)
		})
	}
}

// failSync runs the server with failing syncs, feeds it, and says how many there were. A server that cannot start
// for one says so in one line.
func (k *killer) failSync(strace, call string, nth int) int {
	k.t.Helper()
	c := k.traced(strace, call, "error=EIO", nth)
	if line, ok := c.await("ready"); ok {
		k.readWhile(line, func() {
			for taken := 30; taken == 30 && len(k.acked) < 200*(nth+1); { // a broker whose sync failed takes no more
				got := publishUntilDead(line.NATS, k.events(30), k.rng.Uint64())
				k.acked, taken = append(k.acked, got...), len(got)
				k.rest(400)
			}
			stream := k.readStream(line.NATS)
			k.nothingLost(stream)
			k.digestIsReplays(line, stream)
			k.answersAreRight(line, naive(stream))
		})
	}
	endTraced(c)
	calls, err := os.ReadFile(filepath.Join(k.dir, "calls"))
	if err != nil {
		k.t.Fatal(err)
	}
	return strings.Count(string(calls), "(INJECTED)")
}

// readWhile has readers ask while something is done; none may be turned away.
func (k *killer) readWhile(line logLine, do func()) {
	stopped, stop := context.WithCancel(k.t.Context())
	var asked, wrong atomic.Int64
	var readers sync.WaitGroup
	defer func() { stop(); readers.Wait() }()
	s := &stand{t: k.t, logLine: line}
	for n := range 2 {
		readers.Go(func() { s.reader(stopped, n, &asked, &wrong) })
	}
	do()
}
