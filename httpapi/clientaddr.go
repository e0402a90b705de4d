package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientAddress is the address of who asks: the peer's, or, when that is a trusted proxy, the
// rightmost in X-Forwarded-For that is not one. What stands left of it anybody may have written.
// The zero address when the peer has none (a Unix socket).
func clientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap()
	hops := r.Header["X-Forwarded-For"]
	for i := len(hops) - 1; i >= 0; i-- {
		for rest := hops[i]; rest != "" && among(trusted, client); {
			var hop string
			rest, hop = cutLast(rest)
			addr, ok := hopAddress(hop)
			if !ok {
				return client // whoever wrote that is the last one we know of
			}
			client = addr
		}
	}
	return client
}

func among(prefixes []netip.Prefix, a netip.Addr) bool {
	a = a.WithZone("")
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// cutLast cuts the last element off a comma-separated list.
func cutLast(list string) (rest, last string) {
	i := strings.LastIndexByte(list, ',')
	return list[:max(i, 0)], strings.TrimSpace(list[i+1:])
}

// hopAddress reads an address as proxies write it: with or without port and brackets.
func hopAddress(s string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return a.Unmap(), err == nil
}
