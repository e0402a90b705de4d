package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// statusKept is how long a round's result is shared.
const statusKept = 15 * time.Second

// StatusConfig configures the probes.
type StatusConfig struct {
	// Database checks the service's own storage and stream: it returns nil if the store can be read
	// and written and the stream answers. It returns by the time ctx ends. If Database is nil, the
	// component is never ok.
	Database func(ctx context.Context) error
	// Guard, Chat and Coin are http(s) addresses that are ok if they respond with a status below
	// 500. An empty address is not ok, and not called.
	Guard, Chat, Coin string

	timeout time.Duration // of each probe; zero means callTimeout. For tests
}

// Status is the outcome of one round of probes.
type Status struct {
	Components []Component // database, guard, chat, coin
	CheckedAt  time.Time   // the end of the round
}

// Component is the outcome of one probe.
type Component struct {
	ID         string // database, guard, chat or coin
	Configured bool   // if false, there is no address, so it is not ok
	OK         bool
	Latency    time.Duration // whole milliseconds
}

// statusRounds probes all components concurrently, and shares each round with all callers while it
// runs and for statusKept after it.
type statusRounds struct {
	probes  []*probe
	running *shared[*Status]

	mu   sync.Mutex
	last *Status // nil before the first round
}

// newStatusRounds makes the four probes in the order of the contract.
func newStatusRounds(cfg StatusConfig, m *metrics, work *background, logger *slog.Logger) (*statusRounds, error) {
	timeout := cmp.Or(cfg.timeout, callTimeout)
	s := &statusRounds{running: newShared[*Status](work, 1)}
	add := func(id string, ask func(context.Context) error) {
		s.probes = append(s.probes, &probe{id: id, ask: ask, timeout: timeout, work: work, metrics: m, logger: logger})
	}
	add(upstreamDatabase, cfg.Database)
	for _, c := range []struct{ id, address string }{{upstreamGuard, cfg.Guard}, {upstreamChat, cfg.Chat}, {upstreamCoin, cfg.Coin}} {
		if c.address == "" {
			add(c.id, nil)
			continue
		}
		u, err := ParseURL(c.address)
		if err != nil {
			return nil, fmt.Errorf("address of %s: %w", c.id, err)
		}
		add(c.id, httpProbe(u))
	}
	return s, nil
}

// latest returns the last round if it is fresh, else the running one or a new one.
func (s *statusRounds) latest(ctx context.Context) (*Status, error) {
	if last := s.fresh(); last != nil {
		return last, nil
	}
	status, err := s.running.do(ctx, "round", s.round)
	if err == nil && status == nil {
		err = errors.New("upstream: the round of probes panicked") // the log has the panic
	}
	return status, err
}

// fresh returns the last round, or nil once it is too old, by the monotonic clock.
func (s *statusRounds) fresh() *Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || time.Since(s.last.CheckedAt) >= statusKept {
		return nil
	}
	return s.last
}

// round probes every component, unless another round has ended just before this one began.
func (s *statusRounds) round(ctx context.Context) *Status {
	if last := s.fresh(); last != nil {
		return last
	}
	status := &Status{Components: make([]Component, len(s.probes))}
	var group sync.WaitGroup
	for i, p := range s.probes {
		group.Go(func() { status.Components[i] = p.check(ctx) })
	}
	group.Wait()
	status.CheckedAt = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = status
	return status
}

// probe checks one component. One round at a time uses it.
type probe struct {
	id      string
	ask     func(ctx context.Context) error // nil if there is no address
	timeout time.Duration
	work    *background
	metrics *metrics
	logger  *slog.Logger

	down bool // as last logged

	mu    sync.Mutex
	since time.Time // start of the running call; zero if none is running
}

// check makes one call and waits for its result up to the timeout, even if the call ignores its
// context: a hanging disk must not make clients hang. It makes no second call while one is running.
func (p *probe) check(ctx context.Context) Component {
	if p.ask == nil {
		return Component{ID: p.id}
	}
	began, err := time.Now(), error(nil)
	if since := p.begin(began); since != began {
		began, err = since, &callError{outcomeTimeout, "an earlier probe has still not been answered"}
	} else {
		err = p.call(ctx)
	}
	took := time.Since(began)
	p.record(err, took)
	return Component{ID: p.id, Configured: true, OK: err == nil, Latency: took.Truncate(time.Millisecond)}
}

// begin records that a call begins at now. If an earlier one is still running, it returns that
// call's start.
func (p *probe) begin(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since = now
	}
	return p.since
}

func (p *probe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
}

// call asks the component, and abandons a call that takes too long.
func (p *probe) call(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	answer := make(chan error, 1)
	tell := func(err error) {
		p.end()
		answer <- err
		cancel() // after the result, which a waiter must see first
	}
	go func() {
		closed := p.work.do(func(context.Context) {
			err := errors.New("the probe panicked") // unless it returns
			defer func() { tell(err) }()
			err = p.ask(ctx)
		})
		if closed != nil {
			tell(context.Canceled)
		}
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-answer: // the result itself ended ctx
		return err
	default:
		return ctx.Err()
	}
}

// record counts the outcome, and only logs changes: a component that stays down is logged once.
func (p *probe) record(err error, took time.Duration) {
	if err == nil {
		p.metrics.observe(p.id, outcomeOK, took)
		if p.down {
			p.logger.Info("component answers again", "component", p.id)
		}
		p.down = false
		return
	}
	if errors.Is(err, context.Canceled) {
		return // the server is stopping
	}
	known := &callError{outcomeFailed, err.Error()}
	if !errors.As(err, &known) && errors.Is(err, context.DeadlineExceeded) {
		known = &callError{outcomeTimeout, "no answer in time"}
	}
	p.metrics.observe(p.id, known.outcome, took)
	if !p.down {
		p.logger.Warn("component does not answer", "component", p.id, "error", known.text)
	}
	p.down = true
}

// httpProbe requests a configured address over a new connection: its name, network and TLS are part
// of the probe. It reads the status and headers, but no body. Private addresses are allowed,
// because these services often have one, and nothing of the response is passed on.
func httpProbe(u *url.URL) func(ctx context.Context) error {
	transport := newTransport((&net.Dialer{Timeout: callTimeout}).DialContext)
	transport.DisableKeepAlives = true
	client := newClient(transport)
	address := u.String()
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return &callError{outcomeFailed, "not an address"}
		}
		req.Header.Set("User-Agent", userAgent)
		resp, err := client.Do(req)
		if err != nil {
			return toCallError(err)
		}
		_ = resp.Body.Close() // closes the connection, however long the body is
		if resp.StatusCode >= http.StatusInternalServerError {
			return &callError{outcomeServer, fmt.Sprintf("status %d", resp.StatusCode)}
		}
		return nil
	}
}
