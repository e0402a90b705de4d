package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

// ErrLocked means that another process, or this process itself, has locked the data directory.
var ErrLocked = errors.New("is in use by another process")

// lockName is the file in the data directory whose lock stands for the whole directory. It is never
// removed: a lock on an unlinked file keeps no process out.
const lockName = "registry.lock"

// LockDir locks dir without waiting, and makes dir (mode 0700) if it is missing. Lock a directory before opening
// anything in it, since the embedded broker does not lock its store. If another process holds the lock, the error
// matches ErrLocked; any other error names the remedy. The system releases the lock when the process ends.
func LockDir(dir string) (*flock.Flock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		// With ENOTDIR, err has the path of the file that is in the way, and lockError names that path.
		if !errors.Is(err, syscall.ENOTDIR) {
			err = fmt.Errorf("cannot be made: %w", errors.Unwrap(err))
		}
		return nil, lockError(dir, err)
	}

	path := filepath.Join(dir, lockName)
	file := flock.New(path, flock.SetPermissions(0o600))
	locked, err := file.TryLock()
	if err != nil {
		return nil, lockError(path, err)
	}

	if !locked {
		return nil, fmt.Errorf("data directory %s %w; stop that one, or choose another directory with --data-dir", dir, ErrLocked)
	}
	return file, nil
}

// lockError adds the path and the remedy to err. If err has a path already, lockError names only the path in err.
func lockError(path string, err error) error {
	if pathError, ok := errors.AsType[*os.PathError](err); ok {
		path = pathError.Path
		err = pathError.Err
	}
	return fmt.Errorf("data directory %s: %w; %s", path, err, findRemedy(err))
}
