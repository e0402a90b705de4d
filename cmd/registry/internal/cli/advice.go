package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/nats-io/nats.go"

	"example.org/registry/events/natserr"
)

// Advise adds the remedy, if there is one, to err, an error of a request to JetStream or of the
// disk. A nil err stays nil.
func Advise(err error) error {
	err = natserr.Explain(nil, err, "")
	remedy := natserr.Remedy(err)
	if remedy == "" && isFull(err) {
		remedy = "make space on the disk"
	}
	if remedy == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, remedy)
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// SnapshotAdvice returns the remedy for a snapshot that cannot be used. Errors of the disk and the
// broker are temporary; those of the snapshot itself are not.
func SnapshotAdvice(err error) string {
	var number syscall.Errno
	switch {
	case errors.As(err, &number):
		return reading(err)
	case errors.Is(natserr.Explain(nil, err, ""), natserr.ErrSilent), errors.Is(err, nats.ErrConnectionClosed):
		return "check the broker and try again"
	}
	return "use another one: registry snapshot list shows those in the object store"
}

// Unreadable returns the error, with the remedy, for a file of a flag or an argument that cannot be
// read.
func Unreadable(flag, path string, err error) error {
	return fmt.Errorf("%s: %s: %w; %s", flag, Printable(path), Bare(err), reading(err))
}

// Unwritable is Unreadable for a file that is to be created.
func Unwritable(flag, path string, err error) error {
	return fmt.Errorf("%s: %s: %w; %s", flag, Printable(path), Bare(err), writing(err))
}

// Bare returns a system's error without its path, which may be that of a temporary file.
func Bare(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}

// reading returns the remedy for a file that cannot be read.
func reading(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "correct its name"
	case errors.Is(err, os.ErrPermission):
		return "make it readable for this user"
	case errors.Is(err, syscall.EISDIR):
		return "name a file in it"
	case isFull(err):
		return "make space on the disk"
	}
	return elsewhere(err, "check the file and the disk")
}

// writing returns the remedy for a file that cannot be created.
func writing(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "make its directory, or name a file elsewhere"
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return "name a file in a directory that this user may write to"
	case errors.Is(err, syscall.EISDIR):
		return "name a file in it"
	case isFull(err):
		return "make space on the disk"
	}
	return elsewhere(err, "check the disk, or try again")
}

// elsewhere returns the remedy of the disk for an error of the system. What this program refuses
// itself, such as a pipe, no disk mends.
func elsewhere(err error, disk string) string {
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return disk
	}
	return "name another file"
}
