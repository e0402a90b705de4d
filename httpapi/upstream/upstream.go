package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// callTimeout bounds a probe, and all calls for one picture.
	callTimeout = 6 * time.Second
	maxHeader   = 16 << 10 // bytes
	userAgent   = "registry (+https://example.org/registry)"
)

// Config configures Services. The zero value calls no server: no component is ok, and all pictures
// are generated.
type Config struct {
	Status  StatusConfig
	Avatars AvatarConfig
	// Turn, if not nil, waits until a large picture may be drawn, until leave. Its error is
	// returned.
	Turn func(ctx context.Context) (leave func(), err error)
	// Room, if not nil, takes memory for a picture that is fetched, until release. If it returns an
	// error, the platform is not asked, as if it were busy.
	Room func(bytes int) (release func(), err error)
	// Metrics is where the metrics of calls are registered, once. If nil, they are not.
	Metrics prometheus.Registerer
	// Logger gets failures of upstreams, and panics. If nil, they are dropped.
	Logger *slog.Logger
}

// Services provides the status and the avatars. Any goroutine may call its methods. Its owner calls
// Close.
type Services struct {
	work       *background
	status     *statusRounds
	avatars    *avatars
	identicons identicons
	turn       func(ctx context.Context) (leave func(), err error)
}

// New fails for invalid addresses.
func New(cfg Config) (*Services, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	m := newMetrics(cfg.Metrics)
	s := &Services{work: newBackground(cfg.Logger), turn: cfg.Turn}
	var err error
	if s.status, err = newStatusRounds(cfg.Status, m, s.work, cfg.Logger); err != nil {
		return nil, fmt.Errorf("upstream: status: %w", err)
	}
	if s.avatars, err = newAvatars(cfg.Avatars, m, s.work, cfg.Logger); err != nil {
		return nil, fmt.Errorf("upstream: avatars: %w", err)
	}
	s.avatars.room = cfg.Room
	return s, nil
}

// Close ends the running calls and waits for them. Later requests are served without calls.
func (s *Services) Close() {
	s.work.close()
	s.avatars.closeIdle()
}

// Status returns the newest round of probes, at most 15 s old. Its errors: ErrClosed, or that of
// ctx. The result is shared and must not be modified.
func (s *Services) Status(ctx context.Context) (*Status, error) { return s.status.latest(ctx) }

// Avatar is a picture of a user.
type Avatar struct {
	Type  string // image/png, image/jpeg, image/webp or image/gif
	Bytes []byte // at most 2 MiB; shared, must not be modified
	// Failed means that the picture is generated because the platform failed or was busy: another
	// one may be available soon.
	Failed bool
}

// FreeSize is the largest size of a generated picture that costs no more than a small page.
const FreeSize = 128

// Avatar returns the user's picture on the platform, or else one generated from the id. The id must
// be [A-Za-z0-9_-]{1,64}, and size one of 16, 32, 64, 128, 256 and 512 pixels. Its error is that of
// ctx, or of Config.Turn.
func (s *Services) Avatar(ctx context.Context, user string, size int) (Avatar, error) {
	found, err := s.avatars.get(ctx, user, size)
	if err != nil {
		return Avatar{}, err
	}
	if found.result == avatarFound {
		return Avatar{Type: found.picture.kind, Bytes: found.picture.bytes}, nil
	}
	if size > FreeSize && s.turn != nil {
		leave, err := s.turn(ctx)
		if err != nil {
			return Avatar{}, err
		}
		defer leave()
	}
	drawn, err := s.identicons.encode(user, size)
	return Avatar{Type: drawn.kind, Bytes: drawn.bytes, Failed: found.result == avatarFailed}, err
}

// ParseURL parses the address of a web service: http or https, with a host, maybe with a path, but
// without user, query and fragment.
func ParseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("not an address: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not an http(s) address without user, query and fragment", address)
	}
	return u, nil
}

// newTransport makes the transport for external servers: directly, regardless of proxies in the
// environment; with bounded headers; without decompression, which could make a small response
// large; and only by HTTP/1.1, where a connection has one call at a time.
func newTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		MaxConnsPerHost:        maxAtOnce,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
}

// newClient follows no redirect: the other server chooses its target.
func newClient(t *http.Transport) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// outcome is the result of a call, as a label of metrics.
type outcome string

const (
	outcomeOK       outcome = "ok"
	outcomeNotFound outcome = "not_found" // a valid response: no such user, or no picture
	outcomeLimited  outcome = "limited"   // 429
	outcomeServer   outcome = "server_error"
	outcomeUnusable outcome = "unusable" // an unexpected response
	outcomeTimeout  outcome = "timeout"
	outcomeFailed   outcome = "failed" // no connection, no name, no TLS, no HTTP
)

func outcomes() []outcome {
	return []outcome{outcomeOK, outcomeNotFound, outcomeLimited, outcomeServer, outcomeUnusable, outcomeTimeout, outcomeFailed}
}

// callError is the reason why a call failed. Its text goes to logs, so it contains neither the
// address, which may contain a person's id, nor text of the other server.
type callError struct {
	outcome outcome
	text    string
}

func (e *callError) Error() string { return e.text }

// toCallError converts an error of http.Client.Do, or of reading a body.
func toCallError(err error) *callError {
	var dns *net.DNSError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	var known *callError
	switch timeout := (interface{ Timeout() bool })(nil); {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &callError{outcomeTimeout, "no answer in time"}
	case errors.As(err, &cert):
		return &callError{outcomeFailed, "its certificate is not accepted"}
	case errors.As(err, &dns):
		return &callError{outcomeFailed, "its name cannot be resolved"}
	case errors.As(err, &op) && op.Op == "dial":
		return &callError{outcomeFailed, "no connection: " + op.Err.Error()}
	case errors.Is(err, context.Canceled):
		return &callError{outcomeFailed, "cancelled: the server is stopping"}
	}
	return &callError{outcomeFailed, "the connection broke, or the answer is not HTTP"}
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

// metrics counts calls. No address and no id is a label.
type metrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// newMetrics registers the metrics with reg, unless that is nil. Every series exists from the
// start: a rate over a series that appears with the first error would miss that error.
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
		for _, o := range outcomes() {
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
