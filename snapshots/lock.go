package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"
)

// ErrLocked says that another process has the data directory (or this one, already).
var ErrLocked = errors.New("is in use by another process")

// lockName is the file in the data directory whose lock stands for the whole directory. It stays
// when the lock is gone, but for Undo.
const lockName = "registry.lock"

// lockTries bounds how often a lock file may be removed between its opening and its locking.
const lockTries = 100

// DirLock is the lock on a data directory. Either Unlock or Undo is called, once, by any goroutine; the system
// unlocks too when the process ends, however it ends.
type DirLock struct {
	file *flock.Flock
	made []string // what LockDir made: the file, and the directories from the innermost
}

// LockDir makes dir (mode 0700) when it is missing and takes the one lock on it, before anything
// in it is opened: the embedded broker takes none on its store. It does not wait. The error
// matches ErrLocked when somebody else has it, and else says what to do; it leaves what was there.
func LockDir(dir string) (*DirLock, error) {
	var made []string
	for range lockTries {
		if now := missing(filepath.Join(dir, lockName)); len(now) > len(made) {
			made = now
		}
		l, err := tryLock(dir, made)
		if err != nil {
			if !errors.Is(err, ErrLocked) {
				removeEmpty(made[min(1, len(made)):]) // only who holds the file may remove it
				err = fmt.Errorf("%w%s", err, remedy(err))
			}
			return nil, fmt.Errorf("data directory %w", err)
		}
		if l != nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("data directory %s %w", dir, ErrLocked) // by one after the other
}

// tryLock returns nil when somebody has removed the lock file, or the directory, meanwhile: a lock on a
// file that has no name any more keeps nobody out.
func tryLock(dir string, made []string) (*DirLock, error) {
	switch err := os.MkdirAll(dir, 0o700); {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, reason(dir, err)
	}
	path := filepath.Join(dir, lockName)
	l := &DirLock{flock.New(path, flock.SetPermissions(0o600)), made}
	ok, err := l.file.TryLock()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, reason(path, err)
	case !ok:
		return nil, fmt.Errorf("%s %w", dir, ErrLocked)
	}
	if l.named(path) {
		return l, nil
	}
	return nil, l.file.Unlock()
}

// named says whether the file that is locked is still the one of that name: whoever had it before may have removed it, and
// somebody else made another.
func (l *DirLock) named(path string) bool {
	locked, err := l.file.Stat()
	is, nameErr := os.Lstat(path)
	return err == nil && nameErr == nil && os.SameFile(locked, is)
}

// reason names the path once: the errors of package os differ in which one they name.
func reason(path string, err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		path, err = of.Path, of.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Unlock leaves everything as it is.
func (l *DirLock) Unlock() error { return l.file.Unlock() }

// Undo takes back what LockDir has made, for a call that came to nothing: its lock file, while it is held, and those
// of its directories that are empty.
func (l *DirLock) Undo() error {
	removeEmpty(l.made)
	return l.file.Unlock()
}

// removeEmpty removes files, and directories that are empty, as long as it can: what is in use stays, and
// what it is in.
func removeEmpty(paths []string) {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return
		}
	}
}

// missing is path and the directories above it that do not exist, the innermost first.
func missing(path string) (all []string) {
	for {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) || slices.Contains(all, path) {
			return all
		}
		all = append(all, path)
		path = filepath.Dir(path)
	}
}
