//go:build !race

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
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

// trace starts the server under strace. With --seccomp-bpf it would be faster, and lose most signals.
func (k *killer) trace(strace string, options ...string) {
	k.t.Helper()
	program := filepath.Join(k.dir, "registry")
	_ = os.Symlink(self(k.t), program) // it may be there
	cmd := registrytest.Command(program, k.flags...)
	cmd.Path, cmd.Args = strace, slices.Concat([]string{"strace", "-f", "-qq"}, options, []string{program}, cmd.Args[1:])
	k.begin(cmd)
}

// inject has strace do something at the nth of the calls. The first fsync belongs to the start
// of the broker; of the later ones, only those of the stream's messages count.
func (k *killer) inject(strace, call, what string, nth int) {
	k.t.Helper()
	options := []string{"-o", filepath.Join(k.dir, "calls"), "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, what, nth)}
	if call == "fsync" && nth > 1 {
		options = append(options, "-P", filepath.Join(k.data, "broker", "jetstream", "$G", "streams", "REGISTRY", "msgs", "1.blk"))
	}
	k.trace(strace, options...)
}

// endTraced stops the server that strace runs; strace itself ignores the signal and ends with it.
func (k *killer) endTraced() {
	pid := k.Pid()
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // none: it has ended
	for _, text := range strings.Fields(string(children)) {
		if server, err := strconv.Atoi(text); err == nil {
			_ = syscall.Kill(server, syscall.SIGTERM) // it may have ended by itself
		}
	}
	k.State()
}

// A sync that fails once, at the kth of a thread: the store's (fdatasync) or the broker's and those
// of renamed files (fsync). Readers are answered, nothing that was acknowledged is lost, and what
// starts again is what a replay is (promises 3, 4 and 5).
func TestSyncFails(t *testing.T) {
	t.Parallel()
	strace := findStrace(t)
	most := 1
	if eventstest.FullRun() {
		most = 3
	}
	for _, call := range []string{"fdatasync", "fsync"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			k := newFailing(t)
			k.survive()
			injected := 0
			for nth := 1; nth <= most; nth++ {
				injected += k.failSync(strace, call, nth)
				k.survive()
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
	k.inject(strace, call, "error=EIO", nth)
	if k.WaitReady(k.t.Context()) == nil {
		_, end := registrytest.Reading(k.t, k.HTTP, 2, true)
		for taken := 30; taken == 30 && len(k.acked) < 200*(nth+1); { // a broker whose sync failed takes no more
			before := len(k.acked)
			k.feed(30)
			taken = len(k.acked) - before
			k.rest(400)
		}
		k.right()
		end()
	}
	k.endTraced()
	calls, err := os.ReadFile(filepath.Join(k.dir, "calls"))
	require.NoError(k.t, err)
	return strings.Count(string(calls), "(INJECTED)")
}
