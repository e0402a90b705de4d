package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"example.org/registry/httpapi"
)

// address is a TCP address as host:port. The host may be empty (every interface), the port 0
// (any free one).
type address string

// UnmarshalText checks the form, not whether the address can be had.
func (a *address) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err != nil {
		return fmt.Errorf("%q is not an address like 127.0.0.1:8080", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q: the port must be a number up to 65535", text)
	}
	*a = address(text)
	return nil
}

// loopback is true when only programs on this machine reach the address.
func (a address) loopback() bool {
	host, _, err := net.SplitHostPort(string(a))
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// publicURL is an absolute http(s) address without a trailing slash, query or fragment.
type publicURL string

// UnmarshalText refuses what could not stand in front of a path.
func (u *publicURL) UnmarshalText(text []byte) error {
	parsed, err := url.Parse(string(text))
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" ||
		parsed.RawQuery != "" || parsed.Fragment != "" || parsed.User != nil {
		return errors.New("not an address like https://registry.example, without user, query and fragment")
	}
	*u = publicURL(strings.TrimRight(string(text), "/"))
	return nil
}

// contact is an address that people can write to or call: of the schemes mailto, https and tel.
type contact string

// UnmarshalText leaves the check of the parts to httpapi.
func (c *contact) UnmarshalText(text []byte) error {
	if err := httpapi.CheckContact(string(text)); err != nil {
		return err
	}
	*c = contact(text)
	return nil
}

// network is a range of client addresses: a CIDR, or one address.
type network netip.Prefix

// UnmarshalText takes 10.0.0.0/8 and 10.1.2.3 alike.
func (n *network) UnmarshalText(text []byte) error {
	prefix, err := parseNetwork(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%q is neither an address nor a range like 10.0.0.0/8", text)
	}
	*n = network(prefix)
	return nil
}

// mappedBits is how much of an IPv6 address says that it is an IPv4 one.
const mappedBits = 96

// parseNetwork writes IPv4 ranges as such, however they are given: clients' addresses are.
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
		if prefix.Bits() < mappedBits {
			return netip.Prefix{}, errors.New("a range of IPv4 and other addresses")
		}
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mappedBits)
	}
	return prefix.Masked(), nil
}

func prefixes(networks []network) []netip.Prefix {
	var out []netip.Prefix
	for _, n := range networks {
		out = append(out, netip.Prefix(n))
	}
	return out
}

// streamName is a name that JetStream and its store on disk take.
type streamName string

// UnmarshalText allows the characters that need no thought anywhere.
func (s *streamName) UnmarshalText(text []byte) error {
	ok := len(text) >= 1 && len(text) <= 64
	for _, c := range text {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf("%q is not a stream name: 1 to 64 letters, digits, _ and -", text)
	}
	*s = streamName(text)
	return nil
}

// natsFlags say how to reach a broker that is not the embedded one.
type natsFlags struct {
	NATSCreds string `name:"nats-creds" placeholder:"FILE" help:"Credentials for the broker at --nats-url: a .creds file, or one with the seed of an nkey." group:"Broker and stream"`
	NATSInbox string `name:"nats-inbox-prefix" default:"_INBOX" placeholder:"SUBJECT" help:"Where this user of the broker may listen to answers." group:"Broker and stream"`
	NATSCA    string `name:"nats-ca" placeholder:"FILE" help:"Certificate authority (PEM) of the broker at --nats-url, where the system's do not vouch for it." group:"Broker and stream"`
}

// check reports a file that cannot be used before anything is started.
func (f natsFlags) check() error {
	if strings.ContainsAny(f.NATSInbox, "*> \t") || strings.HasPrefix(f.NATSInbox, ".") || strings.HasSuffix(f.NATSInbox, ".") {
		return usagef("--nats-inbox-prefix: %q is not a subject without wildcards, such as _INBOX.replica", f.NATSInbox)
	}
	for _, file := range []struct{ flag, path string }{{"nats-creds", f.NATSCreds}, {"nats-ca", f.NATSCA}} {
		if file.path == "" {
			continue
		}
		text, err := os.ReadFile(file.path)
		if err != nil {
			return unreadable("--"+file.flag, file.path, err)
		}
		if file.flag == "nats-ca" && !x509.NewCertPool().AppendCertsFromPEM(text) {
			return fmt.Errorf("--nats-ca: %s holds no certificate; it must be PEM, as its authority gives it out", file.path)
		}
	}
	return nil
}

// checkURLs refuses broker addresses that could never be connected to. User information in
// them never appears in the message.
func checkURLs(urls []string) error {
	for _, text := range urls {
		if err := checkURL(strings.TrimSpace(text)); err != nil {
			return usagef("--nats-url: %w", err)
		}
	}
	return nil
}

func checkURL(text string) error {
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return fmt.Errorf("not an address like nats://127.0.0.1:4222")
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
	default:
		return fmt.Errorf("scheme %q is none of nats, tls, ws, wss", u.Scheme)
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("the port must be a number up to 65535")
		}
	}
	return nil
}
