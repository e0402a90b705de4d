package snapshots

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestLockDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	lock, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the new directory: %v, %v", info.Mode(), err)
	}
	_, err = LockDir(dir)
	if !errors.Is(err, ErrLocked) || err.Error() != "data directory "+dir+" is in use by another process" {
		t.Errorf("second lock: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	lock, err = LockDir(dir)
	if err != nil {
		t.Fatalf("lock after unlock: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestLockDirInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LockDir(path)
	if err == nil || err.Error() != "data directory "+path+": not a directory; choose a directory with --data-dir" {
		t.Errorf("lock of a file: %v", err)
	}
}

// Undo leaves what was there before, and nothing else.
func TestLockDirUndo(t *testing.T) {
	top := t.TempDir()
	undo := func(dir string) {
		t.Helper()
		lock, err := LockDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Undo(); err != nil {
			t.Fatal(err)
		}
	}
	undo(filepath.Join(top, "a", "b"))
	undo(top)
	if left, _ := os.ReadDir(top); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	kept := filepath.Join(top, "kept")
	lock, err := LockDir(kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	undo(kept)
	if _, err := os.Lstat(filepath.Join(kept, lockName)); err != nil {
		t.Error("a lock file that was there before is gone")
	}
	busy := filepath.Join(top, "new", "busy")
	if lock, err = LockDir(busy); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(busy, "other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lock.Undo(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(busy, "*")); len(left) != 1 {
		t.Errorf("in a directory with another's file: %v", left)
	}
}

// A lock on a file that has lost its name does not count.
func TestLockDirHasName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, lockName)
	lock, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if !lock.hasName(path) {
		t.Error("its own file is taken for another")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if lock.hasName(path) {
		t.Error("a file that is gone is taken for its own")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if lock.hasName(path) {
		t.Error("another's file is taken for its own")
	}
}

// Two never hold the lock at once, although lock files and directories come and go.
func TestLockDirWhileOthersUndo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	var holders, held atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 2000 {
				lock, err := LockDir(dir)
				if errors.Is(err, ErrLocked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				held.Add(1)
				if holders.Add(1) > 1 {
					t.Error("two hold the lock")
				}
				runtime.Gosched()
				holders.Add(-1)
				if err := lock.Undo(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if held.Load() == 0 {
		t.Error("nobody ever held it")
	}
}
