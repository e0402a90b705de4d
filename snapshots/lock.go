package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ErrLocked says that another process has the data directory (or this one, already).
var ErrLocked = errors.New("is in use by another process")

// lockName is the file in the data directory whose lock stands for the whole directory. It stays
// when the lock is gone: removing it would let two processes lock two files of one name.
const lockName = "registry.lock"

// LockDir makes dir (mode 0700) when it is missing and takes the one lock on it, before anything
// in it is opened: the embedded broker takes none on its store. It does not wait. The error
// matches ErrLocked when somebody else has it. unlock may be called once, by any goroutine; the
// system does it too when the process ends, however it ends.
func LockDir(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock := flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("data directory: lock: %w", err)
	}
	if !ok {
		return nil, fmt.Errorf("data directory %s %w", dir, ErrLocked)
	}
	return lock.Unlock, nil
}
