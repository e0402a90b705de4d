//go:build !race

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.org/registry/events/eventstest"
)

func findStrace(t *testing.T) string {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("strace is missing")
	}
	if err != nil {
		t.Skip("strace is missing")
	}
	return strace
}

// traced starts the server under strace, which does something at the nth of the calls. With
// --seccomp-bpf it would be faster, and lose most signals. The first fsync is one of those by which
// the broker starts; of the others, those of the stream's messages count.
func (k *killer) traced(strace, call, what string, nth int) *child {
	k.t.Helper()
	self, err := os.Executable()
	if err != nil {
		k.t.Fatal(err)
	}
	program := filepath.Join(k.dir, "registry")
	_ = os.Symlink(self, program) // it may be there
	args := []string{"strace", "-f", "-qq", "-o", filepath.Join(k.dir, "calls"), "-e", "trace=" + call,
		"-e", fmt.Sprintf("inject=%s:%s:when=%d", call, what, nth)}
	if call == "fsync" && nth > 1 {
		args = append(args, "-P", filepath.Join(k.dir, "data", "broker", "jetstream", "$G", "streams", "REGISTRY", "msgs", "1.blk"))
	}
	c, err := startChildAs(strace, k.dir, filepath.Join(k.dir, "strace.log"),
		append(os.Environ(), "REGISTRY_DATA_DIR="+filepath.Join(k.dir, "data")), append(args, program, "serve"), "--stream-history=0")
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

// endTraced stops the server that strace runs; strace itself ignores the signal and ends with it.
func endTraced(c *child) {
	pid := c.cmd.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // none: it has ended
	for _, text := range strings.Fields(string(children)) {
		if server, err := strconv.Atoi(text); err == nil {
			_ = syscall.Kill(server, syscall.SIGTERM) // it may have ended by itself
		}
	}
	<-c.ended
}

// A sync that fails once, at the kth of a thread: the store's (fdatasync) or the broker's and those
// of renamed files (fsync). Readers are answered, nothing that was acknowledged is lost, and what
// starts again is what a replay is (promises 3, 4 and 5).
func TestSyncFails(t *testing.T) {
	strace := findStrace(t)
	most := 1
	if eventstest.Full() {
		most = 3
	}
	for _, call := range []string{"fdatasync", "fsync"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			k := newFailing(t)
			k.survive(0)
			injected := 0
			for nth := 1; nth <= most; nth++ {
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

// failSync runs the server with failing syncs, feeds it, and says how many there were. A server
// that cannot start for one says so in one line.
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
	s := &stand{t: k.t, logLine: line, rest: 2 * time.Millisecond}
	for n := range 2 {
		readers.Go(func() { s.reader(stopped, n, &asked, &wrong) })
	}
	do()
}
