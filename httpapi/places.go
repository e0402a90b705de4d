package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"example.org/registry/httpapi/wire"
	"github.com/prometheus/client_golang/prometheus"
)

// places counts the clients that wait: long polls of the feed, or requests for a
// sequence. No client takes more than a quarter of the places, but each may take one
// (httpapi/CONTRACT.md#overload). Any goroutine may use it.
type places struct {
	most    int
	proxies trustedProxies
	full    prometheus.Counter // refusals because all places are taken
	share   prometheus.Counter // refusals because the client has its share

	mu       sync.Mutex
	taken    int
	byClient map[netip.Addr]int // without unknown clients
}

// newPlaces returns places for most clients at a time. kind is their label in refused.
func newPlaces(most int, kind string, proxies trustedProxies, refused *prometheus.CounterVec) *places {
	return &places{
		most: most, proxies: proxies, byClient: map[netip.Addr]int{},
		full: refused.WithLabelValues(kind, "full"), share: refused.WithLabelValues(kind, "share"),
	}
}

func newRefused() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "registry_http_places_refused_total",
		Help: "Requests refused because all places to wait are taken (full), or because one client address holds a quarter of them (share).",
	}, []string{"places", "reason"})
}

// enter takes a place for the client of r until leave is called. Its error is errBusy.
func (p *places) enter(r *http.Request) (leave func(), err error) {
	client, known := p.proxies.knownClient(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= p.most:
		p.full.Inc()
		return nil, errBusy
	case known && p.byClient[client] >= wire.Share(p.most):
		p.share.Inc()
		return nil, errBusy
	}
	p.taken++
	if known {
		p.byClient[client]++
	}
	return func() { p.leave(client, known) }, nil
}

func (p *places) leave(client netip.Addr, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if !known {
		return
	}
	if p.byClient[client]--; p.byClient[client] == 0 {
		delete(p.byClient, client)
	}
}

// count returns the number of taken places.
func (p *places) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// trustedProxies are the networks whose X-Forwarded-For is trusted. If nil, none is.
type trustedProxies []netip.Prefix

// ClientOf returns the function that tells who a connection from an address belongs to, and whether
// that is a single client (wire.Limits).
func ClientOf(trusted []netip.Prefix) func(netip.Addr) (client netip.Addr, known bool) {
	return trustedProxies(trusted).single
}

// knownClient returns the subnet of r's client, and whether it belongs to a single client.
func (trusted trustedProxies) knownClient(r *http.Request) (client netip.Addr, known bool) {
	return trusted.single(trusted.client(r))
}

// single returns the subnet of an address, and whether it belongs to a single client. The address
// of a trusted proxy does not: the proxy did not name its client. Without trusted proxies, a
// loopback, private or shared address may be a proxy's or a gateway's, which all clients share.
func (trusted trustedProxies) single(a netip.Addr) (client netip.Addr, known bool) {
	if len(trusted) > 0 {
		known = a.IsValid() && !trusted.contains(a)
	} else {
		known = a.IsGlobalUnicast() && !a.IsPrivate() && !sharedAddresses().Contains(a)
	}
	return subnet(a), known
}

// sharedAddresses returns the addresses of carriers' gateways, and of pods in some clusters (RFC
// 6598).
func sharedAddresses() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10)
}

// subnet returns the addresses that are assumed to belong to one client: an IPv4 address, or the
// /64 of an IPv6 address.
func subnet(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	p, _ := a.WithZone("").Prefix(64) // fails only for more than 128 bits
	return p.Addr()
}

// client returns the peer's address or, if that is a trusted proxy, the rightmost address in
// X-Forwarded-For that is not one. A client may have forged the addresses to its left. A peer
// without an address (a Unix socket) gives the zero address.
func (trusted trustedProxies) client(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap()
	hops := r.Header["X-Forwarded-For"]
	for i := len(hops) - 1; i >= 0; i-- {
		for rest := hops[i]; rest != "" && trusted.contains(client); {
			comma := strings.LastIndexByte(rest, ',')
			addr, ok := hopAddress(strings.TrimSpace(rest[comma+1:]))
			if !ok {
				return client // the hop that wrote this is the last known one
			}
			client, rest = addr, rest[:max(comma, 0)]
		}
	}
	return client
}

func (trusted trustedProxies) contains(a netip.Addr) bool {
	a = a.WithZone("")
	for _, p := range trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// hopAddress parses an address as proxies write it: with or without port and brackets.
func hopAddress(s string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return a.Unmap(), err == nil
}
