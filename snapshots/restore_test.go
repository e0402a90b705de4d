package snapshots

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A restore that is killed at any moment leaves the old store or the new one.
func TestRestoreKilled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "registry.db")
	digests := map[string]bool{}
	for i, n := range []int{150, 250} {
		s, m := filled(t, n)
		_, b := archiveOf(t, s)
		writeFile(t, fmt.Sprint(path, ".archive", i), b)
		digests[m.Digest().String()] = true
		if i == 0 {
			if _, _, err := Restore(context.Background(), bytes.NewReader(b), Restoring{Path: path}); err != nil {
				t.Fatal(err)
			}
		}
	}
	rng := newRand(t)
	for range 12 {
		cmd := childCommand(t, "restore", path)
		killSoon(t, cmd, time.Duration(rng.IntN(60_000))*time.Microsecond)
		found, err := fileMeta(path)
		if err != nil || !digests[found.Digest] {
			t.Fatalf("after a kill: %+v, %v", found, err)
		}
		if _, err := proveFile(context.Background(), path, found, Work{}); err != nil {
			t.Fatal(err)
		}
	}
}

// What is there keeps its name until the new one has it, also when the new one never gets it.
func TestMoveIntoFails(t *testing.T) {
	s, _ := filled(t, 5)
	_ = s.Close()
	if _, err := moveInto(s.path+".nothing", s.path); err == nil {
		t.Fatal("moved nothing")
	}
	if _, err := fileMeta(s.path); err != nil || len(asides(t, s.path)) > 0 {
		t.Errorf("%v; beside it %v", err, asides(t, s.path))
	}
}

// killSoon lets the child say that it has begun, and kills it after so long.
func killSoon(t *testing.T, cmd *exec.Cmd, after time.Duration) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	<-time.After(after) // the moment of the kill is the point; nothing is waited for
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed: an error by design
}

// restoreForEver restores one archive after the other over the store at path.
func restoreForEver(path string) int {
	fmt.Println("begun")
	for n := 0; ; n++ {
		b, err := os.ReadFile(fmt.Sprint(path, ".archive", n%2))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		_, aside, err := Restore(context.Background(), bytes.NewReader(b), Restoring{Path: path, Replace: true})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		os.Remove(aside)
	}
}
