package httpapi

import (
	"context"
	"math"
	"net/netip"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// The bounds of httpapi/CONTRACT.md#overload. What does not fit is refused at once: errBusy.

// memory bounds the bytes of all answers that are being made or sent. They are taken before they are made, so neither large
// entries nor clients that do not read multiply. Any goroutine may use it.
type memory struct {
	limit   int64
	free    *semaphore.Weighted
	used    atomic.Int64
	refused atomic.Uint64
}

// defaultMemory is for a process that does not know how much memory it has.
const defaultMemory = 256 << 20

// newMemory returns a memory of so many bytes; 0 means defaultMemory.
func newMemory(limit int64) *memory {
	if limit <= 0 {
		limit = defaultMemory
	}
	return &memory{limit: limit, free: semaphore.NewWeighted(limit)}
}

func (m *memory) take(size int) error {
	if !m.free.TryAcquire(int64(size)) {
		m.refused.Add(1)
		return errBusy
	}
	m.used.Add(int64(size))
	return nil
}

func (m *memory) release(size int) {
	m.used.Add(-int64(size))
	m.free.Release(int64(size))
}

// turns bounds text searches, which cost milliseconds, and lookups of a chat id that very many entries share. One runs for
// each CPU but one, which is left for everything else. Any goroutine may use it.
type turns struct {
	free    *semaphore.Weighted
	waiting places
}

const (
	maxSearchesWaiting = 64
	searchWait         = time.Second
)

func newTurns() *turns {
	return &turns{semaphore.NewWeighted(int64(max(runtime.GOMAXPROCS(0)-1, 1))), newPlaces(maxSearchesWaiting)}
}

// take waits for a turn, until leave. Errors: errBusy, or that of ctx.
func (t *turns) take(ctx context.Context) (leave func(), err error) {
	leave = func() { t.free.Release(1) }
	if t.free.TryAcquire(1) {
		return leave, nil
	}
	if !t.waiting.enter() {
		return nil, errBusy
	}
	defer t.waiting.leave()

	bounded, cancel := context.WithTimeout(ctx, searchWait)
	defer cancel()
	if t.free.Acquire(bounded, 1) != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errBusy
	}
	return leave, nil
}

// takeTurn waits until a search may run, if this is one.
func (x *exchange) takeTurn(isSearch bool) (leave func(), err error) {
	if !isSearch {
		return func() {}, nil
	}
	return x.searches.take(x.ctx())
}

// places bounds how many requests wait for something. Any goroutine may use it.
type places chan struct{}

func newPlaces(most int) places { return make(places, most) }

func (p places) enter() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p places) leave() { <-p }

// maxClients is how many client addresses the rate limit tells apart. It forgets those that are seen rarely first, which then
// get a new allowance.
const maxClients = 1 << 16

// rateLimit limits the requests a second of each client address. Any goroutine may use it; nil limits nothing.
type rateLimit struct {
	perSecond float64
	burst     int
	clients   *otter.Cache[netip.Addr, *rate.Limiter]
}

// newRateLimit allows each client n times perSecond requests a second, and bursts of one second's worth. It returns nil if
// perSecond is zero.
func newRateLimit(n int, perSecond float64) *rateLimit {
	if perSecond == 0 {
		return nil
	}
	return &rateLimit{float64(n) * perSecond, n * int(math.Ceil(perSecond)), otter.Must(&otter.Options[netip.Addr, *rate.Limiter]{MaximumSize: maxClients,
		Executor: func(f func()) { f() }})} // no goroutine outlives its caller
}

// allow counts a request. Its error is a failure.
func (l *rateLimit) allow(c *gin.Context) error {
	if l == nil {
		return nil
	}
	address, _ := netip.ParseAddr(c.ClientIP()) // zero for a client without an address
	limiter, _ := l.clients.ComputeIfAbsent(subnetOf(address), func() (*rate.Limiter, bool) {
		return rate.NewLimiter(rate.Limit(l.perSecond), l.burst), false
	})
	if !limiter.Allow() {
		return rateLimited(strconv.Itoa(int(math.Ceil(1 / l.perSecond))))
	}
	return nil
}

// subnetOf returns the addresses that are taken for one client's: an IPv4 address, or the /64 of an IPv6 address.
func subnetOf(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	p, _ := a.WithZone("").Prefix(64) // fails only for more than 128 bits
	return p.Addr()
}
