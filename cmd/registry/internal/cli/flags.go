package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"golang.org/x/term"

	"example.org/registry/events/broker"
	"example.org/registry/httpapi/upstream"
)

// UsageError is a mistake on the command line or in the environment. Nothing has been started.
type UsageError struct{ error }

// Usagef makes a UsageError. Its text begins with the flag.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Bytes is an amount of memory, such as 256MiB or 1GiB; 0 means none was given.
type Bytes int64

// UnmarshalText parses a number of bytes with or without a unit; units are powers of 1024.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := units.RAMInBytes(string(text))
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not an amount of memory like 256MiB", text)
	}
	*b = Bytes(n)
	return nil
}

// Address is a TCP address as host:port. The host may be empty (every interface) and the port 0
// (any free one).
type Address string

// UnmarshalText checks only the form of the address.
func (a *Address) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err != nil {
		return fmt.Errorf("%q is not an address like 127.0.0.1:8080", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q: the port must be a number up to 65535", text)
	}
	*a = Address(text)
	return nil
}

// IsLoopback reports whether only programs on this machine can reach the address.
func (a Address) IsLoopback() bool {
	host, _, err := net.SplitHostPort(string(a))
	return err == nil && broker.Loopback(host)
}

// URL is an absolute http or https address without a trailing slash, query or fragment. It may be
// empty.
type URL string

// UnmarshalText rejects an address to which no path can be appended.
func (u *URL) UnmarshalText(text []byte) error {
	if _, err := upstream.ParseURL(string(text)); len(text) > 0 && err != nil {
		return errors.New("not an address like https://registry.example, without user, query and fragment")
	}
	*u = URL(strings.TrimRight(string(text), "/"))
	return nil
}

// StreamName is a name that JetStream and its store on disk accept.
type StreamName string

var streamName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// UnmarshalText accepts the characters that are safe everywhere.
func (s *StreamName) UnmarshalText(text []byte) error {
	if !streamName.Match(text) {
		return fmt.Errorf("%q is not a stream name: 1 to 64 letters, digits, _ and -", text)
	}
	*s = StreamName(text)
	return nil
}

// NewStreamFlags configure a stream that has to be created.
type NewStreamFlags struct {
	StreamReplicas int  `default:"1" enum:"1,2,3,4,5" help:"Replicas of the stream, where it has to be created: 1 to 5. The embedded broker has one." group:"Broker and stream"`
	StreamHistory  uint `default:"5" help:"Messages kept per subject in the stream, where it has to be created. 0: all." group:"Broker and stream"`
}

// LogFlags configure the log.
type LogFlags struct {
	LogFormat string     `enum:"auto,text,json" default:"auto" help:"Log format: text, json, or auto (text on a terminal, else json)." group:"Log"`
	LogLevel  slog.Level `default:"info" help:"Lowest level that is logged: debug, info, warn or error." group:"Log"`
}

// newHandler returns a handler that writes to w. The format auto means text if stderr is a terminal, else JSON.
func (f LogFlags) newHandler(w, stderr io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: f.LogLevel}
	isAutoText := f.LogFormat == "auto" && IsTerminal(stderr)
	if isAutoText || f.LogFormat == "text" {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}

// IsTerminal reports whether w is a terminal, which gets output for people.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
