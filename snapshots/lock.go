package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

// ErrLocked says that another process, or this one already, holds the data directory.
var ErrLocked = errors.New("is in use by another process")

// lockName is the file in the data directory whose lock is that of the whole directory. It is never
// removed: a lock on a file that has lost its name keeps no process out.
const lockName = "registry.lock"

// DirLock is the lock on a data directory. The system unlocks it too when the process ends, however
// it ends.
type DirLock struct{ file *flock.Flock }

// LockDir makes dir (mode 0700) if it is missing and locks it, before anything in it is opened: the
// embedded broker does not lock its store. It does not wait. If another process holds the lock, the
// error matches ErrLocked; any other error says what to do.
func LockDir(dir string) (*DirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if !errors.Is(err, syscall.ENOTDIR) {
			err = fmt.Errorf("cannot be made: %w", errors.Unwrap(err))
		}
		return nil, lockError(dir, err)
	}
	path := filepath.Join(dir, lockName)
	l := &DirLock{flock.New(path, flock.SetPermissions(0o600))}
	switch locked, err := l.file.TryLock(); {
	case err != nil:
		return nil, lockError(path, err)
	case !locked:
		return nil, fmt.Errorf("data directory %s %w", dir, ErrLocked)
	}
	return l, nil
}

// lockError names the path once: some errors of package os have one, and it may be another.
func lockError(path string, err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		path, err = of.Path, of.Err
	}
	return fmt.Errorf("data directory %s: %w; %s", path, err, remedy(err))
}

// Unlock releases the lock and leaves everything in place.
func (l *DirLock) Unlock() error { return l.file.Unlock() }
