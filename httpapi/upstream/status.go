package upstream

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// statusKept is how long the outcome of a round of probes is used.
const statusKept = 15 * time.Second

// StatusConfig configures the probes.
type StatusConfig struct {
	// Database checks the service's own storage and stream: it returns nil if the store can be read and written and the
	// stream answers. If nil, the component is never ok.
	Database func(ctx context.Context) error

	// Guard, Chat and Coin are http(s) addresses that are ok if they answer with a status below 500. An empty address is not
	// ok, and not called.
	Guard, Chat, Coin string
}

// Status is the outcome of one round of probes.
type Status struct {
	Components []Component // database, guard, chat, coin
	CheckedAt  time.Time   // the end of the round
}

// Component is the outcome of one probe, as GET /api/status sends it.
type Component struct {
	ID         string `json:"id"` // database, guard, chat or coin
	Configured bool   `json:"-"`  // there is an address to probe; without one, the component is not ok
	OK         bool   `json:"ok"`
	LatencyMs  int64  `json:"latencyMs"`
}

// status probes all components at once. All requests during a round get its outcome, and so do requests until statusKept after
// its end.
type status struct {
	ctx     context.Context // of the calls
	probes  []*probe
	running chan struct{} // has an element during a round: a lock for which the clock of a synctest goes on
	last    *Status       // nil before the first round; only for the one whose element is in running
}

// newStatus makes the four probes in the order of the contract.
func newStatus(ctx context.Context, cfg Config, client *client) *status {
	newProbe := func(id string, call func(ctx context.Context) error) *probe {
		return &probe{id: id, call: call, metrics: client.metrics, logger: cfg.Logger}
	}

	s := &status{ctx: ctx, probes: []*probe{newProbe(upstreamDatabase, cfg.Status.Database)}, running: make(chan struct{}, 1)}
	for _, c := range []struct{ id, address string }{
		{upstreamGuard, cfg.Status.Guard}, {upstreamChat, cfg.Status.Chat}, {upstreamCoin, cfg.Status.Coin},
	} {
		var call func(ctx context.Context) error
		if c.address != "" {
			call = func(ctx context.Context) error { return client.probe(ctx, c.address) }
		}
		s.probes = append(s.probes, newProbe(c.id, call))
	}
	return s
}

// latestRound returns the last round if it is fresh, else the running one or a new one.
func (s *status) latestRound() *Status {
	s.running <- struct{}{}
	defer func() { <-s.running }()
	if s.last != nil && time.Since(s.last.CheckedAt) < statusKept {
		return s.last
	}

	round := &Status{Components: make([]Component, len(s.probes))}
	var group sync.WaitGroup
	for i, p := range s.probes {
		group.Go(func() { round.Components[i] = p.run(s.ctx) })
	}
	group.Wait()

	round.CheckedAt = time.Now()
	s.last = round
	return round
}

// probe checks one component. One round at a time uses it.
type probe struct {
	id      string
	call    func(ctx context.Context) error // nil if there is no address
	metrics *metrics
	logger  *slog.Logger

	isDown bool       // the log says that the component does not answer
	answer chan error // gets the answer of the running call; nil if no call is running
	began  time.Time  // when the running call began
}

// run makes one call and waits for its answer for callTimeout, even if the call ignores its context: a hanging disk must not
// make clients hang. If the call of an earlier round still runs, run waits for that call's answer and makes no other call.
func (p *probe) run(ctx context.Context) Component {
	if p.call == nil {
		return Component{ID: p.id}
	}

	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	if p.answer == nil {
		answer := make(chan error, 1)
		go func() { answer <- p.call(ctx) }()
		p.answer = answer
		p.began = time.Now()
	}

	var err error
	select {
	case err = <-p.answer:
		p.answer = nil
	case <-ctx.Done():
		err = ctx.Err()
	}

	took := time.Since(p.began)
	p.record(err, took)
	return Component{ID: p.id, Configured: true, OK: err == nil, LatencyMs: took.Milliseconds()}
}

// record counts the outcome, and logs it only if it differs from the last one: a component that stays down is logged once.
func (p *probe) record(err error, took time.Duration) {
	// If the server is stopping, the component has not failed.
	if errors.Is(err, context.Canceled) {
		return
	}
	p.metrics.observe(p.id, outcomeOf(err), took)
	if err != nil && !p.isDown {
		p.logger.Warn("component does not answer", "component", p.id, "error", err.Error())
	}
	if err == nil && p.isDown {
		p.logger.Info("component answers again", "component", p.id)
	}
	p.isDown = err != nil
}
