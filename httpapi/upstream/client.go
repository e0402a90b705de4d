package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ParseURL parses the address of a web service: http or https, with a host, maybe with a path, but without user, query and
// fragment.
func ParseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("not an address: %w", err)
	}
	isWeb := (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
	hasMore := u.User != nil || u.RawQuery != "" || u.Fragment != ""
	if !isWeb || hasMore {
		return nil, fmt.Errorf("%q is not an http(s) address without user, query and fragment", address)
	}
	return u, nil
}

// client makes calls. Any goroutine may use it.
type client struct {
	http      *http.Client
	userAgent string
	metrics   *metrics
}

// newClient returns a client that ignores the proxies of the environment. The client bounds the headers of an answer. It does not
// decompress, since a small answer could become large. It follows no redirect, since the other server would choose the target.
func newClient(cfg Config) *client {
	transport := cfg.transport
	if transport == nil {
		transport = &http.Transport{
			DialContext:            (&net.Dialer{Timeout: callTimeout}).DialContext,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 16 << 10,
			MaxConnsPerHost:        maxAtOnce,
			MaxIdleConnsPerHost:    8,
			IdleConnTimeout:        30 * time.Second,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		}
	}

	return &client{
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		userAgent: cfg.UserAgent,
		metrics:   newMetrics(cfg.Metrics),
	}
}

// probe returns nil if the server answers with a status below 500. It reads no body. The connection is closed afterwards, so that
// every probe tests connecting, too.
func (c *client) probe(ctx context.Context, address string) error {
	resp, err := c.do(ctx, address, http.Header{"Connection": {"close"}})
	if err != nil {
		return err
	}

	// Closing the unread body closes the connection, however long the body is.
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusInternalServerError {
		return statusError(resp)
	}
	return nil
}

// get returns the body of an answer that has status 200 and at most limit bytes. upstream is the server's name in metrics.
func (c *client) get(ctx context.Context, upstream, address string, header http.Header, limit int64) (body []byte, err error) {
	began := time.Now()
	defer func() { c.metrics.observe(upstream, outcomeOf(err), time.Since(began)) }()

	resp, err := c.do(ctx, address, header)
	if err != nil {
		return nil, err
	}

	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp)
	}

	// The transport does not decompress, so a compressed body is of no use.
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, &callError{outcome: outcomeUnusable, text: "a content encoding that was not asked for"}
	}

	body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, toCallError(err)
	}
	if int64(len(body)) > limit {
		return nil, &callError{outcome: outcomeUnusable, text: fmt.Sprintf("more than %d bytes", limit)}
	}

	// The body may be cached for long, so the copy has no spare capacity.
	return bytes.Clone(body), nil
}

// do sends a request with a header, to which it adds the User-Agent.
func (c *client) do(ctx context.Context, address string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &callError{outcome: outcomeFailed, text: "not an address"}
	}
	req.Header = header
	req.Header.Set("User-Agent", c.userAgent)

	resp, err := c.http.Do(req)
	if err != nil {
		return nil, toCallError(err)
	}
	return resp, nil
}

// outcome is the result of a call, as a label of metrics.
type outcome string

const (
	outcomeOK       outcome = "ok"
	outcomeNotFound outcome = "not_found" // a valid answer: no such user, or no picture
	outcomeLimited  outcome = "limited"   // 429
	outcomeServer   outcome = "server_error"
	outcomeUnusable outcome = "unusable" // an unexpected answer
	outcomeTimeout  outcome = "timeout"
	outcomeFailed   outcome = "failed" // no connection, no name, no TLS, no HTTP
)

// callError is the reason why a call failed. Its text goes to logs, so the text has no path and no words of the other server.
type callError struct {
	outcome outcome
	text    string
	status  int           // of the answer; 0 for none
	pause   time.Duration // the pause in calls that the server asks for; 0 for none
}

func (e *callError) Error() string { return e.text }

const defaultPause = 5 * time.Second // if a server limits the rate and does not say for how long

// statusError returns the error of a status that is no success.
func statusError(resp *http.Response) *callError {
	e := &callError{
		outcome: outcomeUnusable,
		text:    "status " + strconv.Itoa(resp.StatusCode),
		status:  resp.StatusCode,
		pause:   retryAfter(resp.Header),
	}
	if e.status >= http.StatusInternalServerError {
		e.outcome = outcomeServer
		return e
	}

	switch e.status {
	case http.StatusNotFound:
		e.outcome = outcomeNotFound
	case http.StatusTooManyRequests:
		e.outcome = outcomeLimited
		e.pause = cmp.Or(e.pause, defaultPause)
	}
	return e
}

// retryAfter returns the seconds of Retry-After, or 0 if the header is missing or has another form.
func retryAfter(h http.Header) time.Duration {
	d, err := time.ParseDuration(strings.TrimSpace(h.Get("Retry-After")) + "s")
	if err != nil {
		return 0
	}
	return max(d, 0)
}

// toCallError converts an error of http.Client.Do, or of reading a body.
func toCallError(err error) *callError {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return &callError{outcome: outcomeTimeout, text: "no answer in time"}
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &callError{outcome: outcomeFailed, text: certificate.Error()}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return &callError{outcome: outcomeFailed, text: "no connection: " + op.Err.Error()}
	}
	return &callError{outcome: outcomeFailed, text: "the connection broke, or the answer is not HTTP"}
}

// outcomeOf returns the outcome of a call, or of a check of our own storage.
func outcomeOf(err error) outcome {
	if err == nil {
		return outcomeOK
	}
	if failure, ok := errors.AsType[*callError](err); ok {
		return failure.outcome
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return outcomeTimeout
	}
	return outcomeFailed
}

// metrics counts calls. No address and no id is a label.
type metrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// The names of upstreams in metrics and logs. The first four are the components of the status.
const (
	upstreamDatabase = "database"
	upstreamGuard    = "guard"
	upstreamChat     = "chat"
	upstreamCoin     = "coin"
	upstreamChatAPI  = "chat_api"
	upstreamChatCDN  = "chat_cdn"
)

// newMetrics returns the metrics and registers them with reg, unless reg is nil. Every series exists from the start. If a series
// began with the first error, a rate over the series would miss this error.
func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "registry_upstream_requests_total",
			Help: "Calls of the status components and of the chat platform, by outcome; all but ok and not_found are errors.",
		}, []string{"upstream", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "registry_upstream_request_duration_seconds", Help: "Time until a status component or the chat platform answered or failed.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 6.5},
		}, []string{"upstream"}),
	}

	for _, upstream := range []string{upstreamDatabase, upstreamGuard, upstreamChat, upstreamCoin, upstreamChatAPI, upstreamChatCDN} {
		m.seconds.WithLabelValues(upstream)
		for _, o := range []outcome{outcomeOK, outcomeNotFound, outcomeLimited, outcomeServer, outcomeUnusable, outcomeTimeout, outcomeFailed} {
			m.calls.WithLabelValues(upstream, string(o))
		}
	}
	if reg != nil {
		reg.MustRegister(m.calls, m.seconds)
	}
	return m
}

func (m *metrics) observe(upstream string, o outcome, took time.Duration) {
	m.calls.WithLabelValues(upstream, string(o)).Inc()
	m.seconds.WithLabelValues(upstream).Observe(took.Seconds())
}
