package readmodel

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// isInHeap reports whether a word is anywhere in this process's heap after a collection. The word must
// be a constant, and no other test may have it. It skips the test where grep is missing.
func isInHeap(t *testing.T, word string) bool {
	t.Helper()
	dump := filepath.Join(t.TempDir(), "heap")
	f, err := os.Create(dump)
	require.NoError(t, err)
	defer f.Close()
	runtime.GC()
	runtime.GC() // the first leaves what is in pools
	debug.WriteHeapDump(f.Fd())
	grep, err := exec.LookPath("grep")
	if err != nil {
		t.Skip(err)
	}
	err = exec.CommandContext(t.Context(), grep, "-q", "-a", "-F", word, dump).Run() // outside: a buffer of this process would have it
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatal(err)
	}
	return err == nil
}

// leavesHeap waits until a word has left the heap, and reports whether it does: a stack, a pool or
// another goroutine may hold it for a while.
func leavesHeap(t *testing.T, word string) bool {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); isInHeap(t, word); {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
