package snapshots

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLockDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	lock, err := LockDir(dir)
	require.NoError(t, err)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the new directory: %v, %v", info.Mode(), err)
	}
	_, err = LockDir(dir)
	if !errors.Is(err, ErrLocked) || err.Error() != "data directory "+dir+" is in use by another process" {
		t.Errorf("second lock: %v", err)
	}
	require.NoError(t, lock.Unlock())
	lock, err = LockDir(dir)
	if err != nil {
		t.Fatalf("lock after unlock: %v", err)
	}
	require.NoError(t, lock.Unlock())
}

func TestLockDirInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := LockDir(path)
	if err == nil || err.Error() != "data directory "+path+": not a directory; choose a directory with --data-dir" {
		t.Errorf("lock of a file: %v", err)
	}
}
