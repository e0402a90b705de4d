package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const userAgent = "registry (+https://example.org/registry)"

// errUnauthorised is an answer to the API's caller, or a CDN's way of saying that it has no such
// picture.
var errUnauthorised = errors.New("not allowed, so the token may be missing or wrong")

// get is one counted call. Every error of it is fit for a log.
func (p *chatPlatform) get(ctx context.Context, upstream, address string, headers http.Header, limit int64) ([]byte, error) {
	began := time.Now()
	body, err := p.call(ctx, address, headers, limit)
	p.metrics.observe(upstream, outcomeOf(err), time.Since(began))
	if err != nil && !errors.Is(err, ErrNoPicture) {
		return nil, fmt.Errorf("%s: %w", upstream, err)
	}
	return body, err
}

func (p *chatPlatform) call(ctx context.Context, address string, headers http.Header, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &upstreamError{outcomeFailed, "not an address"}
	}
	req.Header = headers
	req.Header.Set("User-Agent", userAgent)
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, failedCall(err)
	}
	defer resp.Body.Close()
	if err := refusal(resp); err != nil {
		return nil, err
	}
	return p.readBody(resp, limit)
}

// refusal is what a status other than 200 means.
func refusal(resp *http.Response) error {
	status := resp.StatusCode
	text := "status " + strconv.Itoa(status)
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusNotFound:
		return ErrNoPicture
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Errorf("%s: %w: %w", text, errUnauthorised, ErrUnusable)
	case status == http.StatusTooManyRequests:
		return &Pause{retryAfter(resp.Header, time.Now()), &upstreamError{outcomeLimited, text}}
	case status >= http.StatusInternalServerError:
		failure := &upstreamError{outcomeServer, text}
		if after := retryAfter(resp.Header, time.Now()); after > 0 {
			return &Pause{after, failure}
		}
		return failure
	}
	return fmt.Errorf("%s: %w", text, ErrUnusable) // redirects too
}

// readBody reads at most limit bytes. An encoded body is not read at all: without Accept-Encoding
// nobody was asked for one. The result is no larger than it must be, since it may be kept.
func (p *chatPlatform) readBody(resp *http.Response, limit int64) ([]byte, error) {
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, fmt.Errorf("encoded although that was not asked for: %w", ErrUnusable)
	}
	if resp.ContentLength > limit {
		return nil, fmt.Errorf("more than %d bytes: %w", limit, ErrUnusable)
	}
	buf, ok := p.bodies.Get().(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
	defer p.bodies.Put(buf)
	buf.Reset()
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, failedCall(err)
	case n > limit:
		return nil, fmt.Errorf("more than %d bytes: %w", limit, ErrUnusable)
	}
	return bytes.Clone(buf.Bytes()), nil
}

func outcomeOf(err error) outcome {
	var known *upstreamError
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(err, ErrNoPicture):
		return outcomeNotFound
	case errors.As(err, &known):
		return known.outcome
	}
	return outcomeUnusable
}

// retryAfter reads the header of that name, seconds or a date; 0 where it says nothing usable.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < maxPause.Seconds() {
		return time.Duration(seconds * float64(time.Second))
	} else if err == nil && seconds >= maxPause.Seconds() {
		return maxPause
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return min(at.Sub(now), maxPause)
	}
	return 0
}
