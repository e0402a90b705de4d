package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// statusKept is how long the outcome of a round is told to everybody (API contract, status).
const statusKept = 15 * time.Second

// StatusConfig is what GET /api/status asks.
type StatusConfig struct {
	// Database asks this service's own storage and stream, within ctx: nil when the store can be
	// read and written and the stream answers. It is not asked while Health says no. Nil: never ok.
	Database func(ctx context.Context) error
	// Guard, Chat and Coin are http(s) addresses of which any answer below 500 is a good one.
	// Empty: not ok, without a call.
	Guard, Chat, Coin string
	// Timeout bounds each answer. Zero: 6 s.
	Timeout time.Duration
	// Keep is how long an outcome is kept, errors too. Zero: 15 s.
	Keep time.Duration
}

// statusCheck is one component (seed, status).
type statusCheck struct {
	ID        string `json:"id"`
	OK        bool   `json:"ok"`
	LatencyMs int64  `json:"latencyMs"`
}

// statusBody is the body of the answer (seed, status).
type statusBody struct {
	Checks    []statusCheck `json:"checks"`
	CheckedAt string        `json:"checkedAt"`
}

// statusRounds probes all components at once, and shares each round with everybody who asks
// while it runs and for Keep after it. Clocks are monotonic: setting the system's time neither
// lengthens nor shortens anything.
type statusRounds struct {
	components []*component
	keep       time.Duration
	clock      monotonic
	flights    *flights[struct{}, []byte]

	mu    sync.Mutex
	body  []byte        // of the last round; nil before the first
	ended time.Duration // when that was, by clock
}

// body of the newest round, at most Keep old. Its errors are those of flights.do.
func (s *statusRounds) latest(ctx context.Context) ([]byte, error) {
	if body := s.kept(); body != nil {
		return body, nil
	}
	return s.flights.do(ctx, struct{}{}, s.round)
}

// kept is the last round's body while it is fresh enough.
func (s *statusRounds) kept() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.body == nil || s.clock.now()-s.ended >= s.keep {
		return nil
	}
	return s.body
}

// round asks every component, unless a round has ended just before this one began.
func (s *statusRounds) round(ctx context.Context) []byte {
	if body := s.kept(); body != nil {
		return body
	}
	result := statusBody{Checks: make([]statusCheck, len(s.components))}
	var group sync.WaitGroup
	for i, c := range s.components {
		group.Go(func() { result.Checks[i] = c.check(ctx) })
	}
	group.Wait()
	result.CheckedAt = stamp(time.Now())
	body, err := json.Marshal(result)
	if err != nil {
		panic(err) // not reached: the type holds nothing that cannot be written
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body, s.ended = body, s.clock.now()
	return body
}

// newStatusRounds makes the four components in the contract's order.
func newStatusRounds(cfg StatusConfig, health *Health, m *upstreamMetrics, work *detached, logger *slog.Logger) (*statusRounds, error) {
	timeout, keep := cfg.Timeout, cfg.Keep
	if timeout == 0 {
		timeout = upstreamTimeout
	}
	if keep == 0 {
		keep = statusKept
	}
	s := &statusRounds{keep: keep, clock: monotonic{time.Now()}, flights: newFlights[struct{}, []byte](work, 1)}
	add := func(id string, ask func(context.Context) error) {
		s.components = append(s.components, &component{id: id, ask: ask, timeout: timeout, work: work, metrics: m, logger: logger})
	}
	add(upstreamDatabase, databaseProbe(cfg.Database, health))
	for _, c := range []struct{ id, address string }{{upstreamGuard, cfg.Guard}, {upstreamChat, cfg.Chat}, {upstreamCoin, cfg.Coin}} {
		if c.address == "" {
			add(c.id, nil)
			continue
		}
		u, err := upstreamURL(c.address)
		if err != nil {
			return nil, fmt.Errorf("address of %s: %w", c.id, err)
		}
		add(c.id, httpProbe(u))
	}
	return s, nil
}

// databaseProbe is false in every row of the contract's table in which answers are old or none
// (API contract, operators), and asks the storage itself in the others.
func databaseProbe(ask func(context.Context) error, health *Health) func(context.Context) error {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context) error {
		_, state, err := health.look()
		if err != nil {
			return err
		}
		if state.Frozen {
			return errors.New("the stream is not the one the model was made from")
		}
		return ask(ctx)
	}
}

// latestRound is what a request for the status is told, whatever its form.
func (p *Public) latestRound(c *gin.Context) ([]byte, error) {
	if err := scanQuery(c.Request.URL.RawQuery, nil, nil); err != nil {
		return nil, err
	}
	body, err := p.rounds.latest(c.Request.Context())
	if err == nil && body == nil {
		err = errors.New("status: the round failed") // it has logged why
	}
	return body, err
}

// status answers GET /api/status.
func (p *Public) status(c *gin.Context) error {
	body, err := p.latestRound(c)
	if err != nil {
		return err
	}
	h := c.Writer.Header()
	p.fixed.common(h)
	h["Cache-Control"] = p.statusCache
	c.Data(http.StatusOK, p.fixed.json[0], body)
	return nil
}
