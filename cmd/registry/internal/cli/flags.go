package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/docker/go-units"
	"golang.org/x/term"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/httpapi"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/upstream"
)

// UsageError is a mistake on the command line or in the environment. Nothing has been started.
type UsageError struct {
	Err     error
	Command string // whose help explains more, such as "registry serve"; empty: not known yet
}

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError. Its text begins with the flag.
func Usagef(format string, args ...any) error { return UsageError{Err: fmt.Errorf(format, args...)} }

// CheckEmpty rejects arguments and flags that are present but empty, as an unset shell variable
// makes them, since the command does something else without them. A flag whose tag has empty:"" may
// be empty. An empty environment variable counts as unset.
func CheckEmpty(parsed *kong.Context) error {
	for _, p := range parsed.Path {
		switch {
		case p.Positional != nil && isEmpty(p.Positional.Target):
			return Usagef("%s: must not be empty", p.Positional.Name)
		case p.Flag != nil && isEmpty(p.Flag.Target) && !(p.Flag.Tag.Has("empty") && p.Flag.Target.Len() == 0):
			return Usagef("--%s: must not be empty", p.Flag.Name)
		}
	}
	return nil
}

// isEmpty reports whether v is an empty string, an empty list, or a list with an empty string.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return v.Len() == 0
	case reflect.Slice:
		for i := range v.Len() {
			if isEmpty(v.Index(i)) {
				return true
			}
		}
		return v.Len() == 0
	}
	return false
}

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

// UnmarshalText checks the form, not whether the address can be bound.
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

// Loopback reports whether only programs on this machine can reach the address.
func (a Address) Loopback() bool {
	host, _, err := net.SplitHostPort(string(a))
	return err == nil && broker.Loopback(host)
}

// URL is an absolute http or https address without a trailing slash, query or fragment. It may be
// empty.
type URL string

// UnmarshalText rejects an address to which no path can be appended.
func (u *URL) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*u = ""
		return nil
	}
	if _, err := upstream.ParseURL(string(text)); err != nil {
		return errors.New("not an address like https://registry.example, without user, query and fragment")
	}
	*u = URL(strings.TrimRight(string(text), "/"))
	return nil
}

// Appeals is an http or https address that may have a query and, after the host, {reportId}. It may
// be empty.
type Appeals string

// UnmarshalText leaves the check to the site, which links to the address.
func (a *Appeals) UnmarshalText(text []byte) error {
	if _, err := site.ParseAppeals(string(text)); err != nil {
		return fmt.Errorf("not an address like https://registry.example/appeals?report={reportId}: %w", err)
	}
	*a = Appeals(text)
	return nil
}

// Reports is an http or https address that may have a query. It may be empty.
type Reports string

// UnmarshalText leaves the check to the site, which links to the address.
func (r *Reports) UnmarshalText(text []byte) error {
	if err := site.CheckReports(string(text)); err != nil {
		return fmt.Errorf("not an address like https://registry.example/report: %w", err)
	}
	*r = Reports(text)
	return nil
}

// Contact is an address for reaching people: a mailto:, https: or tel: URL.
type Contact string

// UnmarshalText leaves the check to httpapi, which publishes the address.
func (c *Contact) UnmarshalText(text []byte) error {
	if err := httpapi.CheckContact(string(text)); err != nil {
		return err
	}
	*c = Contact(text)
	return nil
}

// Network is a range of client addresses: a CIDR, or one address.
type Network netip.Prefix

// UnmarshalText accepts 10.0.0.0/8 and 10.1.2.3 alike.
func (n *Network) UnmarshalText(text []byte) error {
	prefix, err := parseNetwork(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%q is neither an address nor a range like 10.0.0.0/8", text)
	}
	*n = Network(prefix)
	return nil
}

// parseNetwork converts an IPv4 range written as IPv6 to IPv4, since clients' addresses are then
// IPv4.
func parseNetwork(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, err
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if prefix.Addr().Is4In6() {
		const mapped = 96 // bits of the IPv6 prefix that marks IPv4 addresses
		if prefix.Bits() < mapped {
			return netip.Prefix{}, errors.New("a range of IPv4 and other addresses")
		}
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mapped)
	}
	return prefix.Masked(), nil
}

// Prefixes converts networks to httpapi's type.
func Prefixes(networks []Network) []netip.Prefix {
	var out []netip.Prefix
	for _, n := range networks {
		out = append(out, netip.Prefix(n))
	}
	return out
}

// StreamName is a name that JetStream and its store on disk accept.
type StreamName string

// UnmarshalText accepts the characters that are safe everywhere.
func (s *StreamName) UnmarshalText(text []byte) error {
	ok := len(text) >= 1 && len(text) <= 64
	for _, c := range text {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf("%q is not a stream name: 1 to 64 letters, digits, _ and -", text)
	}
	if name := string(text); name == events.RejectedStream || strings.HasPrefix(name, "OBJ_") || strings.HasPrefix(name, "KV_") {
		return fmt.Errorf("%q is a stream that this program or JetStream keeps for other things", text)
	}
	*s = StreamName(text)
	return nil
}

// LogFlags configure the log.
type LogFlags struct {
	LogFormat string     `enum:"auto,text,json" default:"auto" help:"Log format: text, json, or auto (text on a terminal, else json)." group:"Log"`
	LogLevel  slog.Level `default:"info" help:"Lowest level that is logged: debug, info, warn or error." group:"Log"`
}

// handler returns a handler that writes to w, in the format for stderr.
func (f LogFlags) handler(w, stderr io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: f.LogLevel}
	if f.LogFormat == "text" || f.ForPeople(stderr) {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}

// ForPeople reports whether a person reads stderr and has requested no other format.
func (f LogFlags) ForPeople(stderr io.Writer) bool {
	return f.LogFormat != "json" && IsTerminal(stderr)
}

// IsTerminal reports whether w is a terminal, which gets output for people.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
