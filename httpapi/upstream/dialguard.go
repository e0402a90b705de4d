package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

var errNotPublic = errors.New("the name resolves to an address that is not public")

// dialGuard connects only to public addresses, whatever a name resolves to. After resolution, just
// before connecting, it refuses private, loopback, link-local (where clouds have their metadata),
// shared, multicast and translated addresses. The tables are IANA's, from the ssrf library. Hosts
// that an operator can only mean to be private are exempt: an address, localhost, or a name without
// a dot, which public DNS does not have.
type dialGuard struct {
	named   map[string]bool // host:port
	public  net.Dialer
	trusted net.Dialer
}

// newDialGuard takes the addresses that the operator configured.
func newDialGuard(addresses ...*url.URL) *dialGuard {
	guardian := ssrf.New(ssrf.WithAnyPort())
	g := &dialGuard{named: map[string]bool{}}
	g.public = net.Dialer{Timeout: callTimeout, Control: func(network, addr string, _ syscall.RawConn) error {
		return refusePrivate(guardian, network, addr)
	}}
	g.trusted = net.Dialer{Timeout: callTimeout}
	for _, u := range addresses {
		if ownNetwork(u.Hostname()) {
			g.named[hostPort(u)] = true
		}
	}
	return g
}

// dial implements http.Transport's DialContext: addr is the host and port of the request.
func (g *dialGuard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if g.named[addr] {
		return g.trusted.DialContext(ctx, network, addr)
	}
	return g.public.DialContext(ctx, network, addr)
}

// refusePrivate checks a resolved address.
func refusePrivate(guardian *ssrf.Guardian, network, addr string) error {
	resolved, err := netip.ParseAddrPort(addr)
	if err != nil || resolved.Addr().IsMulticast() || guardian.Safe(network, addr, nil) != nil {
		return errNotPublic
	}
	return nil
}

// ownNetwork reports whether a host can only be in the operator's own network.
func ownNetwork(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host != "" && !strings.Contains(host, ".")
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
