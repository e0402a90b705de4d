package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// errGuarded is a connection that was not made.
var errGuarded = errors.New("the name leads to an address that is not public")

// dialGuard connects to public addresses alone, whatever a name resolves to: private, loopback,
// link-local (where clouds keep their metadata), shared, multicast and translated ones are
// refused after resolution, just before connecting. The tables are IANA's, by way of the ssrf
// library. Exempt are the places that the operator has named in a way that can mean nothing
// else: an address, localhost, or a name without a dot, which public DNS does not have.
type dialGuard struct {
	named   map[string]bool // host:port
	public  net.Dialer
	trusted net.Dialer
}

// newDialGuard takes the addresses that the operator has configured.
func newDialGuard(addresses ...*url.URL) *dialGuard {
	guardian := ssrf.New(ssrf.WithAnyPort())
	g := &dialGuard{named: map[string]bool{}}
	g.public = net.Dialer{Timeout: upstreamTimeout, Control: func(network, addr string, _ syscall.RawConn) error {
		return refuseHidden(guardian, network, addr)
	}}
	g.trusted = net.Dialer{Timeout: upstreamTimeout}
	for _, u := range addresses {
		if ownNetwork(u.Hostname()) {
			g.named[hostPort(u)] = true
		}
	}
	return g
}

// dial is for http.Transport: addr is the host and port of the request's address.
func (g *dialGuard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if g.named[addr] {
		return g.trusted.DialContext(ctx, network, addr)
	}
	return g.public.DialContext(ctx, network, addr)
}

// refuseHidden is asked with the resolved address.
func refuseHidden(guardian *ssrf.Guardian, network, addr string) error {
	resolved, err := netip.ParseAddrPort(addr)
	if err != nil || resolved.Addr().IsMulticast() || guardian.Safe(network, addr, nil) != nil {
		return errGuarded
	}
	return nil
}

// ownNetwork is true for a host that only the operator can mean.
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

// upstreamURL reads the address of somebody else's service: http or https, a host, perhaps a
// path.
func upstreamURL(address string) (*url.URL, error) {
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("%q has no host", address)
	}
	return u, nil
}

// monotonic is the time since it was made, on a clock that nobody sets.
type monotonic struct{ began time.Time }

func (m monotonic) now() time.Duration { return time.Since(m.began) }
