package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Exit statuses (API contract, program).
const (
	exitOK     = 0 // also after SIGTERM or SIGINT with everything saved
	exitFailed = 1 // one line on standard error says what to do
	exitUsage  = 2 // the command line or the environment is wrong
)

// usageError is a mistake on the command line or in the environment: nothing was started.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usagef makes a usageError; its text names the flag.
func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// report writes a failure as one line and returns the exit status that belongs to it.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	line := "registry: " + oneLine(err.Error())
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintln(stderr, line+" (registry --help explains the flags)")
		return exitUsage
	}
	fmt.Fprintln(stderr, line)
	return exitFailed
}

// oneLine replaces line breaks: an error of a library may span lines, our report may not.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
