package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
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

// publicURL is an absolute http(s) address without a trailing slash, query or fragment. Empty: there is none.
type publicURL string

// UnmarshalText refuses what could not stand in front of a path.
func (u *publicURL) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*u = ""
		return nil
	}
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
