//go:build !race

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// TestKillAtWrites kills the real program at the Nth of the system calls by which it changes its
// files, those of the libraries included, and starts it again: what TestKill promises holds at each
// of them. strace counts for each thread, so this covers rather than repeats; what is inside a
// commit of the store, snapshots.TestKillInsideCommit covers call by call. The flag -kills of
// TestKill makes it longer.
func TestKillAtWrites(t *testing.T) {
	t.Parallel()
	strace := findStrace(t)
	rounds := max(1, killRounds()/2)
	k := &killer{t: t, rng: rand.New(rand.NewPCG(2, 2)), dir: t.TempDir(), pool: eventstest.Entries(40, 2)}
	killed := 0
	for round := range rounds {
		for _, call := range []string{"pwrite64", "fdatasync", "fsync", "ftruncate", "/^rename", "/^unlink"} {
			if k.killAt(strace, call, 1+round) {
				killed++
			}
			k.compare(1000 + round)
		}
	}
	if killed < 3*rounds { // some calls are few, or on threads that change
		t.Errorf("killed %d times: the test has tested next to nothing", killed)
	}
	t.Logf("killed %d times", killed)
}

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

// killAt runs the server under strace, feeds it, and says whether it died of the nth call.
func (k *killer) killAt(strace, call string, nth int) bool {
	k.t.Helper()
	c := k.traced(strace, call, "signal=SIGKILL", nth)
	defer endTraced(c)
	line, ok := c.await("ready")
	for n := 0; ok && n < 10; n++ {
		k.acked = append(k.acked, publishUntilDead(line.NATS, k.events(30), k.rng.Uint64())...)
		select {
		case <-c.ended:
			return true
		case <-time.After(50 * time.Millisecond):
		}
	}
	return !ok
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

// compare starts the server as usual and compares it with the stream.
func (k *killer) compare(round int) {
	k.t.Helper()
	c := k.start(round)
	line := k.ready(c)
	k.notBackwards(line)
	stream := k.readStream(line.NATS)
	k.nothingLost(stream)
	k.answersAreRight(line, naive(stream))
	if aside, _ := filepath.Glob(filepath.Join(k.dir, "data", "registry.db.damaged-*")); len(aside) > 0 {
		k.t.Errorf("set aside: %q", aside)
	}
	c.end(syscall.SIGTERM)
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
