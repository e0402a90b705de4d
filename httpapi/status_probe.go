package httpapi

import (
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

// component is one thing whose state is shown. One round at a time uses it.
type component struct {
	id      string
	ask     func(ctx context.Context) error // nil: there is nothing to ask
	timeout time.Duration
	work    *detached
	metrics *upstreamMetrics
	logger  *slog.Logger

	down bool // as the log was last told

	mu    sync.Mutex
	since time.Time // when the call began that is still running; zero: none is
}

// check asks once and waits for the answer as long as is allowed, even where the call itself
// does not heed its context: a disk that hangs is no reason for readers to hang. Such a call is
// not repeated while it runs.
func (c *component) check(ctx context.Context) statusCheck {
	if c.ask == nil {
		return statusCheck{ID: c.id}
	}
	began, err := time.Now(), error(nil)
	if since := c.begin(began); since != began {
		began, err = since, &upstreamError{outcomeTimeout, "an earlier question is still not answered"}
	} else {
		err = c.askWithin(ctx)
	}
	took := time.Since(began)
	c.note(err, took)
	return statusCheck{ID: c.id, OK: err == nil, LatencyMs: took.Milliseconds()}
}

// askWithin leaves a call that takes too long to itself.
func (c *component) askWithin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	answer := make(chan error, 1)
	started := c.work.start(func(context.Context) {
		err := errors.New("the probe failed") // where it panics
		defer func() {
			c.end()
			answer <- err
			cancel() // after the answer: who waits for it waits for ctx as well
		}()
		err = c.ask(ctx)
	})
	if !started {
		cancel()
		c.end()
		return context.Canceled
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-answer: // it ended the context itself, by answering
		return err
	default:
		return ctx.Err()
	}
}

// begin notes that a call begins at now, or returns when the one began that still runs.
func (c *component) begin(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		c.since = now
	}
	return c.since
}

func (c *component) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Time{}
}

// note counts, and logs changes alone: a component that stays down is told of once.
func (c *component) note(err error, took time.Duration) {
	if err == nil {
		c.metrics.observe(c.id, outcomeOK, took)
		if c.down {
			c.logger.Info("component answers again", "component", c.id)
		}
		c.down = false
		return
	}
	if errors.Is(err, context.Canceled) {
		return // the server stops
	}
	known := &upstreamError{outcomeFailed, err.Error()}
	if !errors.As(err, &known) && errors.Is(err, context.DeadlineExceeded) {
		known = &upstreamError{outcomeTimeout, "no answer in time"}
	}
	c.metrics.observe(c.id, known.outcome, took)
	if !c.down {
		c.logger.Warn("component does not answer", "component", c.id, "error", known.text)
	}
	c.down = true
}

// httpProbe asks an address that the operator has configured, over a connection of its own: the
// name, the network and TLS are part of what is probed. An answer is a status line with its
// headers; the body is not read. Nothing of it is passed on, so private addresses are allowed:
// these services often have one.
func httpProbe(u *url.URL) func(ctx context.Context) error {
	transport := newTransport((&net.Dialer{Timeout: upstreamTimeout}).DialContext)
	transport.DisableKeepAlives = true
	client := newUpstreamClient(transport)
	address := u.String()
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return &upstreamError{outcomeFailed, "not an address"}
		}
		req.Header.Set("User-Agent", userAgent)
		resp, err := client.Do(req)
		if err != nil {
			return failedCall(err)
		}
		_ = resp.Body.Close() // cuts the connection, however much would follow
		if resp.StatusCode >= http.StatusInternalServerError {
			return &upstreamError{outcomeServer, fmt.Sprintf("status %d", resp.StatusCode)}
		}
		return nil
	}
}
