package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/projector"
)

// Codes of the broker's errors that are not in nats.go.
const (
	codeNotAvailable = 10008 // no leader of the cluster
	codeNoResources  = 10023
	codeNoStorage    = 10047
	codeNotMade      = 10049 // a stream's files
	codeNotStored    = 10077 // a message
)

// advised is err, of a question to JetStream or of the disk, and what to do about it, where that can be known.
func advised(err error) error {
	var api *jetstream.APIError
	code := jetstream.ErrorCode(0)
	if errors.As(err, &api) {
		code = api.ErrorCode
	}
	switch err = projector.Reason(err); {
	case errors.Is(err, events.ErrRefused):
		return err
	case errors.Is(err, projector.ErrNoJetStream):
		return fmt.Errorf("%w; correct --nats-url or --nats-creds", err)
	case errors.Is(err, projector.ErrSilent), code == codeNotAvailable:
		return fmt.Errorf("%w; see whether enough brokers are up, and try again", err)
	case code == codeNoResources, code == codeNoStorage, code == codeNotMade, code == codeNotStored:
		return fmt.Errorf("%w; make space on the broker's disk: its log says what else may be wrong", err)
	case isFull(err):
		return fmt.Errorf("%w; make space on the disk", err)
	}
	return err
}

func isTimeout(err error) bool {
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// insteadOf says what to do about a snapshot that cannot be used. It tells the disk's and the broker's errors, which pass,
// from the snapshot's own.
func insteadOf(err error) string {
	var number syscall.Errno
	switch {
	case errors.As(err, &number):
		return reading(err)
	case isTimeout(err), errors.Is(err, nats.ErrConnectionClosed):
		return "see to the broker and try again"
	}
	return "use another one: registry snapshot list shows those in the object store"
}

// unreadable says of a file that a flag or an argument names why it cannot be read, and what to do.
func unreadable(flag, path string, err error) error {
	return fmt.Errorf("%s: %s: %w; %s", flag, printable(path), bare(err), reading(err))
}

// unwritable is unreadable for a file that is to be made.
func unwritable(flag, path string, err error) error {
	return fmt.Errorf("%s: %s: %w; %s", flag, printable(path), bare(err), writing(err))
}

// bare is a system's error without the names that it went through, which may be of a temporary file.
func bare(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}

// reading is what to do about a file that cannot be read.
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
	return "see to the file and the disk"
}

// writing is what to do about a file that cannot be made.
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
	return "see to the disk, or try again"
}
