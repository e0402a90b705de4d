package httpapi

import (
	"context"
	"math"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"example.org/registry/httpapi/paste"
	"example.org/registry/httpapi/respond"
	"example.org/registry/readmodel"
)

// The bounds on requests that wait for a sequence (httpapi/CONTRACT.md#sequences).
const (
	maxMinWait   = 2 * time.Second
	maxWaiting   = 256
	minSeqHeader = "Registry-Min-Sequence"
)

// state is what an answer is computed from: one immutable state of the model, and what goes with
// it.
type state struct {
	view    *readmodel.View
	headers *stateHeaders
	noStore bool // the reader asked for a sequence: no cache may keep the answer
	// staleSince is when the data was last known to be complete, where a page of the site is to say
	// so; else zero.
	staleSince time.Time
	month      readmodel.Month // that it is now, on pages of the site
}

// mark returns a with the headers of the state that it was computed from.
func (s state) mark(a respond.Response) respond.Response {
	if a.NoStore = s.noStore; s.headers != nil {
		a.At = &s.headers.Stamp
	}
	return a
}

// gate decides whether a request may be answered, and from which state. Any goroutine may use it.
type gate struct {
	health  *Health
	headers stateHeaderCache
	wait    time.Duration // maxMinWait; less in tests
	waiting *places       // of requests that wait for a sequence
}

// admit returns the state to answer r from, waiting for one if r asks for a sequence. Its
// parameters have been checked. Errors: a paramError for a bad header, errLoading, errNotReached,
// errBusy, or that of r's context.
func (g *gate) admit(r *http.Request) (state, error) {
	atLeast, given, err := minSequence(r.Header[minSeqHeader])
	if err != nil {
		return state{}, err
	}
	at, err := g.reach(r, atLeast)
	at.noStore = given
	return at, err
}

// reach returns a state for r at a sequence or after it. Errors: as admit's.
func (g *gate) reach(r *http.Request, atLeast uint64) (state, error) {
	view, readiness, err := g.health.View()
	if err != nil {
		return state{}, err
	}
	if view.Sequence() < atLeast {
		if readiness.Frozen {
			return state{}, errNotReached
		}
		if err := g.await(r, atLeast); err != nil {
			return state{}, err
		}
		if view, readiness, err = g.health.View(); err != nil { // what came may be too little to answer from
			return state{}, err
		}
		if view.Sequence() < atLeast { // another model has taken its place
			return state{}, errNotReached
		}
	}
	return state{view: view, headers: g.headers.of(view, readiness.AsOf)}, nil
}

// await waits for a view at seq or after it.
func (g *gate) await(r *http.Request, seq uint64) error {
	leave, err := g.waiting.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	ctx := r.Context()
	bounded, cancel := context.WithTimeout(ctx, g.wait)
	defer cancel()
	_, err = g.health.Reader.Await(bounded, seq)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return errNotReached
	}
}

// minSequence reads the values of Registry-Min-Sequence. As with parameters, an empty one is
// absent, and one given twice is wrong.
func minSequence(values []string) (seq uint64, given bool, err error) {
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return 0, false, nil
	}
	if len(values) > 1 || !paste.Digits(values[0]) {
		return 0, false, invalid(minSeqHeader)
	}
	if seq, err = strconv.ParseUint(values[0], 10, 64); err != nil {
		return 0, false, invalid(minSeqHeader)
	}
	return seq, true, nil
}

// ready is 1 while lists, checks and donations are answered, else 0, for the metrics.
func (g *gate) ready() float64 {
	if _, _, err := g.health.View(); err != nil {
		return 0
	}
	return 1
}

// searches bounds text searches, which cost milliseconds where everything else costs microseconds.
// What exceeds the bounds is refused at once (httpapi/CONTRACT.md#overload). Other requests do not
// pass through it. Any goroutine may use it.
//
// A full queue means overload: it refuses searches that have waited long, queues no more than run,
// and leaves one CPU free to accept connections, if there is another. Overload ends once
// nothing has been refused for a while.
type searches struct {
	most  int           // how many run at once
	limit int           // how many wait
	wait  time.Duration // the longest wait; a tenth of it in overload

	mu       sync.Mutex
	running  int
	queue    []*waitingSearch // first come, first served
	overload time.Time        // when it ends

	waiting atomic.Int64 // length of queue, for the metrics
}

// count returns the number of searches that wait.
func (s *searches) count() int { return int(s.waiting.Load()) }

// waitingSearch is a search that waits. turn has room for the one answer: nil when it may run, else
// errBusy.
type waitingSearch struct {
	since time.Time
	turn  chan error
}

// calm is how long nothing may be refused before overload is over.
const calm = 500 * time.Millisecond

// newSearches lets one search run for each CPU, and 64 more wait for a second.
func newSearches() *searches {
	return &searches{most: min(runtime.GOMAXPROCS(0), runtime.NumCPU()), limit: 64, wait: time.Second}
}

// enter waits for the search's turn; leave ends it. For what is no search, both do nothing. Errors:
// errBusy, or that of ctx.
func (s *searches) enter(ctx context.Context, search bool) (leave func(), err error) {
	if !search {
		return func() {}, nil
	}
	w, err := s.join()
	if err == nil && w != nil {
		err = s.await(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	return s.leave, nil
}

// join begins a search, or puts it into the queue, which w is then its place in.
func (s *searches) join() (w *waitingSearch, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run, room, _ := s.boundsLocked()
	switch {
	case s.running < run && len(s.queue) == 0:
		s.running++
		return nil, nil
	case len(s.queue) >= room:
		s.overload = time.Now().Add(calm)
		return nil, errBusy
	}
	w = &waitingSearch{time.Now(), make(chan error, 1)}
	s.queue = append(s.queue, w)
	s.waiting.Add(1)
	return w, nil
}

// boundsLocked returns how many searches may run and wait now, and for how long.
func (s *searches) boundsLocked() (run, room int, wait time.Duration) {
	if time.Now().Before(s.overload) {
		run = max(s.most-1, 1)
		return run, min(run, s.limit), s.wait / 10
	}
	return s.most, s.limit, s.wait
}

// await waits for w's turn.
func (s *searches) await(ctx context.Context, w *waitingSearch) (err error) {
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case err := <-w.turn:
		return err
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errBusy
	}
	s.mu.Lock()
	i := slices.Index(s.queue, w)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.waiting.Add(-1)
		if err == errBusy {
			s.overload = time.Now().Add(calm)
		}
	}
	s.mu.Unlock()
	if i < 0 && <-w.turn == nil { // too late: its turn has just come
		s.leave()
	}
	return err
}

// leave ends a search and begins the next.
func (s *searches) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	run, _, wait := s.boundsLocked()
	for s.running < run && len(s.queue) > 0 {
		w := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		s.waiting.Add(-1)
		if time.Since(w.since) > wait {
			w.turn <- errBusy
			continue
		}
		w.turn <- nil
		s.running++
	}
}

// maxClients is how many client addresses the rate limit tells apart. It forgets the one heard of
// longest ago first, which gets a new allowance.
const maxClients = 1 << 16

// rateLimit allows each client address so many requests a second. Any goroutine may use it.
type rateLimit struct {
	every   rate.Limit
	burst   int
	proxies trustedProxies
	clients *lru.Cache[netip.Addr, *rate.Limiter]
	refused *rateError
}

// newRateLimit allows bursts of one second's worth. It returns nil when perSecond is zero.
func newRateLimit(perSecond float64, proxies trustedProxies) *rateLimit {
	return newRateLimitOf(1, perSecond, proxies)
}

// newRateLimitOf allows n requests for each that newRateLimit allows.
func newRateLimitOf(n int, perSecond float64, proxies trustedProxies) *rateLimit {
	if perSecond == 0 {
		return nil
	}
	clients, _ := lru.New[netip.Addr, *rate.Limiter](maxClients) // fails only for a size below 1
	return &rateLimit{
		every:   rate.Limit(float64(n) * perSecond),
		burst:   n * int(math.Ceil(perSecond)),
		proxies: proxies,
		clients: clients,
		refused: &rateError{strconv.Itoa(int(math.Ceil(1 / (float64(n) * perSecond))))},
	}
}

// take uses up one request of the client's allowance. Its error is a rateError.
func (l *rateLimit) take(r *http.Request) error {
	client := subnet(l.proxies.client(r))
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
