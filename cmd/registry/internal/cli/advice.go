package cli

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"

	"example.org/registry/events/natserr"
)

// Advise adds the remedy, if one is known, to the error of a request to JetStream or of the disk. A
// nil err stays nil.
func Advise(err error) error {
	err = natserr.Explain(nil, err, "") // no connection and no subject are at hand here
	if remedy := Remedy(err); remedy != "" {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}

// FileError returns the error of a file that cannot be read or written, with the remedy. flag is the flag or
// the argument that has named the file.
func FileError(flag, path string, err error) error {
	return fmt.Errorf("%s: %s: %w; %s", flag, Printable(path), WithoutPath(err), cmp.Or(Remedy(err), "name another file"))
}

// WithoutPath returns an error of the system without its path, which may name a temporary file.
func WithoutPath(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}

// Remedy returns what to do about an error of the broker or of a file, or "" if that is not known.
func Remedy(err error) string {
	if remedy := natserr.Remedy(err); remedy != "" {
		return remedy
	}

	number, _ := errors.AsType[syscall.Errno](err)
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
	return ""
}
