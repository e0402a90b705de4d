package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// The bounds on other people's servers (API contract, status and avatars).
const (
	upstreamTimeout = 6 * time.Second
	maxUpstreamHead = 16 << 10 // bytes of headers
)

// newTransport is how other people's servers are reached: directly whatever the environment says
// of proxies, with bounded headers, and without decompression, which a small answer could make
// large. HTTP/1.1 alone, where one connection is one call.
func newTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxUpstreamHead,
		MaxConnsPerHost:        maxAtOnce,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
}

// newUpstreamClient follows no redirect: where one leads is the other side's choice.
func newUpstreamClient(t *http.Transport) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// outcome is what came of a call, as a metric's label.
type outcome string

const (
	outcomeOK       outcome = "ok"
	outcomeNotFound outcome = "not_found" // an answer like any other: nobody, or no picture
	outcomeLimited  outcome = "limited"   // 429
	outcomeServer   outcome = "server_error"
	outcomeUnusable outcome = "unusable" // answered, but not with what was asked for
	outcomeTimeout  outcome = "timeout"
	outcomeFailed   outcome = "failed" // no connection, no name, no TLS, no HTTP
)

func outcomes() []outcome {
	return []outcome{outcomeOK, outcomeNotFound, outcomeLimited, outcomeServer, outcomeUnusable, outcomeTimeout, outcomeFailed}
}

// upstreamError is why a call failed. Its text goes to logs, so it holds neither the address,
// where a person's id may be, nor anything that the other side wrote.
type upstreamError struct {
	outcome outcome
	text    string
}

func (e *upstreamError) Error() string { return e.text }

// failedCall makes an upstreamError of what http.Client.Do or reading a body returned.
func failedCall(err error) *upstreamError {
	var dns *net.DNSError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	var known *upstreamError
	switch timeout := (interface{ Timeout() bool })(nil); {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &upstreamError{outcomeTimeout, "no answer in time"}
	case errors.As(err, &cert):
		return &upstreamError{outcomeFailed, "its certificate is not accepted"}
	case errors.As(err, &dns):
		return &upstreamError{outcomeFailed, "its name cannot be resolved"}
	case errors.As(err, &op) && op.Op == "dial":
		return &upstreamError{outcomeFailed, "no connection: " + op.Err.Error()}
	case errors.Is(err, context.Canceled):
		return &upstreamError{outcomeFailed, "given up: the server stops"}
	}
	return &upstreamError{outcomeFailed, "the connection broke or what came is not HTTP"}
}
