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

// This file has the bounds of httpapi/CONTRACT.md#overload. A request of a client that is over its rate is refused with
// errRateLimited, a request beyond any other bound with errBusy.

// memory bounds the memory of all answers that are being made or sent. Any goroutine may use it.
type memory struct {
	limit   int64
	used    atomic.Int64
	refused atomic.Uint64
}

const (
	// defaultMemory is for a process that does not know how much memory it has.
	defaultMemory = 256 << 20
	// memoryPerByte is how often each byte of an answer counts: the garbage collector lets the heap grow to twice its live bytes.
	memoryPerByte = 2
)

// newMemory returns a memory of limit bytes; 0 means defaultMemory.
func newMemory(limit int64) *memory {
	if limit <= 0 {
		limit = defaultMemory
	}
	return &memory{limit: limit}
}

// take takes the memory for more bytes of an answer, or gives it back if bytes is negative. Giving back never fails.
func (m *memory) take(bytes int) error {
	size := int64(bytes) * memoryPerByte
	used := m.used.Add(size)
	if used > m.limit && size > 0 {
		m.used.Add(-size)
		m.refused.Add(1)
		return errBusy
	}
	return nil
}

// turns bounds how many text searches, which take milliseconds, run at once: as many as there are CPUs, less one CPU for everything
// else. Any goroutine may use turns.
type turns struct {
	free    *semaphore.Weighted
	waiting places
}

const (
	maxSearchesWaiting = 64          // searches that wait for a turn at once
	searchWait         = time.Second // how long a search waits for its turn
)

func newTurns() *turns {
	maxRunning := max(runtime.GOMAXPROCS(0)-1, 1)
	return &turns{free: semaphore.NewWeighted(int64(maxRunning)), waiting: newPlaces(maxSearchesWaiting)}
}

// take waits for a turn, which the caller ends with leave. Its error is errBusy.
func (t *turns) take(ctx context.Context) error {
	if t.free.TryAcquire(1) {
		return nil
	}
	if !t.waiting.enter() {
		return errBusy
	}
	defer t.waiting.leave()

	ctx, cancel := context.WithTimeout(ctx, searchWait)
	defer cancel()
	if t.free.Acquire(ctx, 1) != nil {
		return errBusy
	}
	return nil
}

func (t *turns) leave() { t.free.Release(1) }

// places bounds how many requests wait for something. Any goroutine may use it.
type places chan struct{}

func newPlaces(maxWaiting int) places { return make(places, maxWaiting) }

// enter takes a place, which leave gives back. It reports false if all places are taken.
func (p places) enter() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p places) leave() { <-p }

func (p places) taken() int64 { return int64(len(p)) }

// maxClients is how many client addresses a rate limit remembers. The limit forgets rare clients first, and gives a
// forgotten client a new allowance.
const maxClients = 1 << 16

// rateLimit limits the requests a second of each client address. Any goroutine may use it; nil limits nothing.
type rateLimit struct {
	perSecond float64
	burst     int
	clients   *otter.Cache[netip.Addr, *rate.Limiter]
}

// newRateLimit returns a limit of factor × perSecond requests a second; as many may come in one burst. It returns nil if perSecond
// is zero.
func newRateLimit(factor int, perSecond float64) *rateLimit {
	if perSecond == 0 {
		return nil
	}
	return &rateLimit{
		perSecond: float64(factor) * perSecond,
		burst:     factor * int(math.Ceil(perSecond)),
		clients: otter.Must(&otter.Options[netip.Addr, *rate.Limiter]{
			MaximumSize: maxClients,
			Executor:    func(f func()) { f() }, // asynchronous tasks run in the caller's goroutine
		}),
	}
}

// allow counts a request of a client. If the client is over its limit, allow returns the failure to answer with.
func (l *rateLimit) allow(c *gin.Context) error {
	if l == nil {
		return nil
	}

	// All clients without an address share one allowance.
	address, _ := netip.ParseAddr(c.ClientIP())
	newLimiter := func() (limiter *rate.Limiter, cancel bool) {
		return rate.NewLimiter(rate.Limit(l.perSecond), l.burst), false
	}
	limiter, _ := l.clients.ComputeIfAbsent(subnetOf(address), newLimiter)

	isAllowed := limiter.Allow()
	if !isAllowed {
		secondsToNext := math.Ceil(1 / l.perSecond)
		return rateLimited(strconv.Itoa(int(secondsToNext)))
	}
	return nil
}

// subnetOf returns the address by which a client is counted: its IPv4 address, or the first address of the /64 of its IPv6 address.
func subnetOf(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	p, _ := a.WithZone("").Prefix(64) // fails only for more than 128 bits
	return p.Addr()
}
