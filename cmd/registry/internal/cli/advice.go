package cli

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/nats-io/nats.go"

	"example.org/registry/events/natserr"
)

// Advise adds the remedy, if there is one, to err, an error of a request to JetStream or of the
// disk. A nil err stays nil.
func Advise(err error) error {
	err = natserr.Explain(nil, err, "")
	remedy := natserr.Remedy(err)
	if remedy == "" && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		remedy = fileRemedy(err)
	}
	if remedy == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, remedy)
}

// SnapshotAdvice returns the remedy for a snapshot that cannot be used. Errors of the disk and the
// broker are temporary; a damaged snapshot stays damaged.
func SnapshotAdvice(err error) string {
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return fileRemedy(err)
	}
	if errors.Is(natserr.Explain(nil, err, ""), natserr.ErrSilent) || errors.Is(err, nats.ErrConnectionClosed) {
		return "check the broker and try again"
	}
	return "use another one: registry snapshot list shows those in the object store"
}

// FileError returns the error, with the remedy, for a file of a flag or an argument that cannot be
// read or written.
func FileError(flag, path string, err error) error {
	return fmt.Errorf("%s: %s: %w; %s", flag, Printable(path), WithoutPath(err), fileRemedy(err))
}

// WithoutPath returns a system's error without its path, which may be of a temporary file.
func WithoutPath(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}

// fileRemedy returns the remedy for a file that cannot be read or written.
func fileRemedy(err error) string {
	number, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return "name another file" // this program refuses it
	}

	switch number {
	case syscall.ENOENT, syscall.ENOTDIR:
		return "correct its name"
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		return "name a file that this user may use"
	case syscall.EISDIR:
		return "name a file in it"
	case syscall.ENOSPC, syscall.EDQUOT:
		return "make space on the disk"
	}
	return "check the file and the disk"
}
