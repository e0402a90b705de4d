package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"
)

// ErrLocked says that another process, or this one already, holds the data directory.
var ErrLocked = errors.New("is in use by another process")

// lockName is the file in the data directory whose lock is that of the whole directory. Unlock
// leaves it there.
const lockName = "registry.lock"

// lockTries bounds how often another process may remove the lock file between our opening and
// locking it.
const lockTries = 100

// DirLock is the lock on a data directory. Any goroutine may call Unlock or Undo, one of them,
// once. The system unlocks too when the process ends, however it ends.
type DirLock struct {
	file *flock.Flock
	made []string // what LockDir made: the file, then directories from the innermost
}

// LockDir makes dir (mode 0700) if it is missing and locks it, before anything in it is opened: the
// embedded broker does not lock its store. It does not wait. If another process holds the lock, the
// error matches ErrLocked; any other error says what to do. LockDir changes nothing that was there.
func LockDir(dir string) (*DirLock, error) {
	var made []string
	for range lockTries {
		if now := missing(filepath.Join(dir, lockName)); len(now) > len(made) {
			made = now
		}
		l, err := tryLock(dir, made)
		if err != nil {
			if !errors.Is(err, ErrLocked) {
				removeEmpty(made[min(1, len(made)):]) // but not the file: only its holder may
				err = fmt.Errorf("%w; %s", err, remedy(err))
			}
			return nil, fmt.Errorf("data directory %w", err)
		}
		if l != nil {
			return l, nil
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { // nobody removes it time and again
		return nil, fmt.Errorf("data directory %s cannot be made: %w; choose another with --data-dir", dir, bare(err))
	}
	return nil, fmt.Errorf("data directory %s %w", dir, ErrLocked) // by one process after the other
}

// isFile reports whether what stood in the way of err's directory stands there still, and is none.
// Otherwise another process made that directory, and may have removed it, between MkdirAll's two
// looks.
func isFile(err error) bool {
	var at *os.PathError
	if !errors.As(err, &at) {
		return true
	}
	info, err := os.Lstat(at.Path)
	return err == nil && !info.IsDir()
}

// tryLock returns nil if another process has removed the lock file or the directory meanwhile: a
// lock on a file that has lost its name keeps nobody out.
func tryLock(dir string, made []string) (*DirLock, error) {
	switch err := os.MkdirAll(dir, 0o700); {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrExist) && !isFile(err):
		return nil, nil
	case err != nil:
		return nil, withPath(dir, err)
	}
	path := filepath.Join(dir, lockName)
	l := &DirLock{flock.New(path, flock.SetPermissions(0o600)), made}
	ok, err := l.file.TryLock()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, withPath(path, err)
	case !ok:
		return nil, fmt.Errorf("%s %w", dir, ErrLocked)
	}
	if l.hasName(path) {
		return l, nil
	}
	return nil, l.file.Unlock()
}

// hasName reports whether the locked file still has its name. The last holder may have removed it,
// and another process made a new one.
func (l *DirLock) hasName(path string) bool {
	locked, err := l.file.Stat()
	is, nameErr := os.Lstat(path)
	return err == nil && nameErr == nil && os.SameFile(locked, is)
}

// withPath prefixes err with a path, once: some errors of package os have one, and it may be
// another.
func withPath(path string, err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		path, err = of.Path, of.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// bare is a system's error without the path in it.
func bare(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Unlock releases the lock and leaves everything in place.
func (l *DirLock) Unlock() error { return l.file.Unlock() }

// Undo releases the lock and removes what LockDir created, when the command did nothing: the lock
// file, and those of its directories that are empty.
func (l *DirLock) Undo() error {
	removeEmpty(l.made) // while the lock is held
	return l.file.Unlock()
}

// removeEmpty removes files and empty directories in turn and stops at the first that it cannot
// remove.
func removeEmpty(paths []string) {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return
		}
	}
}

// missing lists path and the directories above it that do not exist, the innermost first.
func missing(path string) (all []string) {
	for {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) || slices.Contains(all, path) {
			return all
		}
		all = append(all, path)
		path = filepath.Dir(path)
	}
}
