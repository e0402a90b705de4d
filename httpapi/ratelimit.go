package httpapi

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// maxClients is how many client addresses are told apart. The one heard of longest ago is
// forgotten first: it gets a new allowance then.
const maxClients = 1 << 16

// rateLimit allows each client address so many requests a second. Any goroutine may use it.
type rateLimit struct {
	every   rate.Limit
	burst   int
	proxies []netip.Prefix
	clients *lru.Cache[netip.Addr, *rate.Limiter]
	refused *rateError
}

// newRateLimit is nil when perSecond is zero. A burst of one second's worth passes.
func newRateLimit(perSecond float64, proxies []netip.Prefix) *rateLimit {
	if perSecond == 0 {
		return nil
	}
	clients, _ := lru.New[netip.Addr, *rate.Limiter](maxClients) // fails only for a size below 1
	return &rateLimit{
		every:   rate.Limit(perSecond),
		burst:   int(math.Ceil(perSecond)),
		proxies: proxies,
		clients: clients,
		refused: &rateError{strconv.Itoa(int(math.Ceil(1 / perSecond)))},
	}
}

// take uses up one request of the client's allowance, or says that there is none left.
func (l *rateLimit) take(r *http.Request) error {
	client := subnet(clientAddress(r, l.proxies))
	limiter, known := l.clients.Get(client)
	if !known {
		limiter = rate.NewLimiter(l.every, l.burst)
		if first, raced, _ := l.clients.PeekOrAdd(client, limiter); raced {
			limiter = first
		}
	}
	if !limiter.Allow() {
		return l.refused
	}
	return nil
}

// subnet is what one reader is taken to own: an IPv4 address, or the /64 of an IPv6 address.
func subnet(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	p, _ := a.WithZone("").Prefix(64) // fails only for more than 128 bits
	return p.Addr()
}
