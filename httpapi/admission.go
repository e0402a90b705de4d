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

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"

	"example.org/registry/httpapi/respond"
	"example.org/registry/readmodel"
)

// The bounds on requests that wait for a sequence (httpapi/CONTRACT.md#sequences).
const (
	maxMinWait   = 2 * time.Second
	maxWaiting   = 256
	minSeqHeader = "Registry-Min-Sequence"
)

// state is the basis of a response: one immutable state of the model, and its headers.
type state struct {
	view    *readmodel.View
	headers *stateHeaders
	noStore bool // the client asked for a sequence: no cache may store the response
	// staleSince is when stale data was last known to be complete, if a page of the site has to
	// show that; else zero.
	staleSince time.Time
	room       *respond.Room // of the response, for what builds it
}

// withHeaders returns a with the headers of the state.
func (s state) withHeaders(a respond.Response) respond.Response {
	if a.NoStore = s.noStore; s.headers != nil {
		a.At = &s.headers.Stamp
	}
	return a
}

// gate decides whether a request may be served, and from which state. Any goroutine may use it.
type gate struct {
	health  *Health
	headers stateHeaderCache
	wait    time.Duration // maxMinWait; shorter in tests
	waiting *places       // for requests that wait for a sequence
}

// admit returns the state to serve r from. If r asks for a sequence, admit waits for it. The
// parameters of r have been checked. Errors: a paramError for a bad header, errLoading,
// errNotReached, errBusy, or that of r's context.
func (g *gate) admit(r *http.Request) (state, error) {
	atLeast, given, err := minSequence(r.Header[minSeqHeader])
	if err != nil {
		return state{}, err
	}
	at, err := g.reach(r, atLeast)
	at.noStore = given
	return at, err
}

// reach returns a state for r at a sequence or after it. Its errors are those of admit.
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
		if view, readiness, err = g.health.View(); err != nil { // the new view may not be good enough to serve
			return state{}, err
		}
		if view.Sequence() < atLeast { // another model has replaced it
			return state{}, errNotReached
		}
	}
	return state{view: view, headers: g.headers.headersFor(view, readiness.AsOf)}, nil
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
// absent, and a repeated one is wrong.
func minSequence(values []string) (seq uint64, given bool, err error) {
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return 0, false, nil
	}
	if seq, err = strconv.ParseUint(values[0], 10, 64); err != nil || len(values) > 1 {
		return 0, false, invalid(minSeqHeader)
	}
	return seq, true, nil
}

// ready returns 1 while lists, checks and donations are served, else 0, for the metrics.
func (g *gate) ready() float64 {
	if _, _, err := g.health.View(); err != nil {
		return 0
	}
	return 1
}

// searches bounds text searches, which cost milliseconds, and lookups of a chat id that very many
// entries share; all other requests cost microseconds and do not pass through it. Searches beyond the
// bounds are refused at once (httpapi/CONTRACT.md#overload). Any goroutine may use it.
//
// A full queue means overload. In overload, searches that have waited long are refused, the queue
// is no longer than the number of running searches, and one CPU, if there are several, stays free
// to accept connections. Overload ends once nothing has been refused for a while.
type searches struct {
	most  int           // maximum that run at once
	limit int           // maximum that wait
	wait  time.Duration // longest wait; a tenth of it in overload

	mu       sync.Mutex
	running  int
	queue    []*waitingSearch // first come, first served
	overload time.Time        // end of the overload

	waiting atomic.Int64 // length of queue, for the metrics
}

// count returns the number of searches that wait.
func (s *searches) count() int { return int(s.waiting.Load()) }

// waitingSearch is a search in the queue. turn has room for its one result: nil when it may run,
// else errBusy.
type waitingSearch struct {
	since time.Time
	turn  chan error
}

// calm is the time without a refusal after which overload ends.
const calm = 500 * time.Millisecond

// newSearches lets one search run for each CPU, and 64 more wait for up to a second.
func newSearches() *searches {
	return &searches{most: min(runtime.GOMAXPROCS(0), runtime.NumCPU()), limit: 64, wait: time.Second}
}

// enter waits for the search's turn; leave ends it. If search is false, both do nothing. Errors:
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

// join begins a search. If it has to wait, w is its place in the queue.
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

// boundsLocked returns how many searches may currently run and wait, and for how long.
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

// maxClients is how many client addresses the rate limit distinguishes. It forgets rarely seen
// addresses first, which then get a new allowance.
const maxClients = 1 << 16

// rateLimit limits the requests a second of each client address. Any goroutine may use it.
type rateLimit struct {
	every   rate.Limit
	burst   int
	proxies trustedProxies
	clients *otter.Cache[netip.Addr, *rate.Limiter]
	refused *rateError
}

// newRateLimit allows n times perSecond requests a second, and bursts of one second's worth. It returns
// nil if perSecond is zero.
func newRateLimit(n int, perSecond float64, proxies trustedProxies) *rateLimit {
	if perSecond == 0 {
		return nil
	}
	return &rateLimit{
		every:   rate.Limit(float64(n) * perSecond),
		burst:   n * int(math.Ceil(perSecond)),
		proxies: proxies,
		clients: otter.Must(&otter.Options[netip.Addr, *rate.Limiter]{MaximumSize: maxClients,
			Executor: func(f func()) { f() }}), // runs f in the caller's goroutine
		refused: &rateError{strconv.Itoa(int(math.Ceil(1 / (float64(n) * perSecond))))},
	}
}

// allow counts a request against the client's allowance. Its error is a rateError.
func (l *rateLimit) allow(r *http.Request) error { return l.allowN(r, 1) }

// allowN counts n requests; none if n is not positive.
func (l *rateLimit) allowN(r *http.Request, n int) error {
	if n <= 0 {
		return nil
	}
	limiter, _ := l.clients.ComputeIfAbsent(subnet(l.proxies.client(r)), func() (*rate.Limiter, bool) {
		return rate.NewLimiter(l.every, l.burst), false
	})
	if !limiter.AllowN(time.Now(), n) {
		return l.refused
	}
	return nil
}
