package snapshots

import (
	"errors"
	"os"
	"path/filepath"
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
