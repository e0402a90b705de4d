package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"example.org/registry/events"
)

// Bounds of responses, in bytes.
const (
	maxPicture = 2 << 20
	maxProfile = 64 << 10 // about a user
)

// platform is the source of users' pictures. Any goroutine may call it; both methods respect ctx
// and read no more bytes than a picture may have.
//
// Their errors: errNoPicture; a pauseError if the platform limits the rate; an error that wraps
// errUnusable if its response is not passed on; any other if it failed. No error's text contains a
// user's id or the token.
type platform interface {
	// avatar returns the name of the user's picture.
	avatar(ctx context.Context, user string) (name string, err error)
	// picture returns the picture with that name; size is the preferred side in pixels.
	picture(ctx context.Context, user, name string, size int) (picture, error)
}

// picture is an image that is passed on. Its bytes are shared, so they must not be modified.
type picture struct {
	kind  string // media type, detected from the bytes
	bytes []byte
}

var (
	errNoPicture = errors.New("no such user, or one without a picture")
	errUnusable  = errors.New("not a picture that is passed on")
	// errUnauthorized is the API's response to a bad caller, or a CDN's way of saying that it has
	// no such picture.
	errUnauthorized = errors.New("not allowed, so the token may be missing or wrong")
)

// pauseError is a platform's request for a pause.
type pauseError struct {
	wish  time.Duration // zero if it did not say how long
	cause error         // the response
}

func (p *pauseError) Error() string { return p.cause.Error() }
func (p *pauseError) Unwrap() error { return p.cause }

// Secret is a text that logs and messages do not show.
type Secret string

const redacted = "[redacted]"

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return redacted }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// chatPlatform calls a Discord-compatible platform. It sends the token only to its API.
type chatPlatform struct {
	api, cdn string // without a trailing slash
	token    Secret
	client   *http.Client
	metrics  *metrics
}

// newChatPlatform needs a configuration that AvatarConfig.Check has accepted.
func newChatPlatform(cfg AvatarConfig, m *metrics) *chatPlatform {
	return &chatPlatform{
		api:     strings.TrimRight(cfg.API, "/"),
		cdn:     strings.TrimRight(cfg.CDN, "/"),
		token:   cfg.Token,
		client:  newClient(newTransport((&net.Dialer{Timeout: callTimeout}).DialContext)),
		metrics: m,
	}
}

// avatar implements platform.
func (p *chatPlatform) avatar(ctx context.Context, user string) (string, error) {
	headers := http.Header{"Accept": {"application/json"}}
	if p.token != "" {
		headers.Set("Authorization", "Bot "+string(p.token))
	}
	body, err := p.get(ctx, upstreamChatAPI, p.api+"/users/"+url.PathEscape(user), headers, maxProfile)
	if errors.Is(err, errUnauthorized) {
		return "", &pauseError{unauthorisedPause, err} // platforms block callers that keep trying
	}
	if err != nil {
		return "", err
	}
	return avatarName(body)
}

// avatarName reads the only needed member of a response about a user.
func avatarName(body []byte) (string, error) {
	var profile struct {
		Avatar *string `json:"avatar"`
	}
	if err := json.Unmarshal(body, &profile); err != nil {
		return "", fmt.Errorf("the answer is not the expected JSON: %w", errUnusable)
	}
	switch {
	case profile.Avatar == nil || *profile.Avatar == "":
		return "", errNoPicture
	case !events.IsID(*profile.Avatar): // it becomes part of an address
		return "", fmt.Errorf("invalid picture name: %w", errUnusable)
	}
	return *profile.Avatar, nil
}

// picture implements platform.
func (p *chatPlatform) picture(ctx context.Context, user, name string, size int) (picture, error) {
	address := p.cdn + "/avatars/" + url.PathEscape(user) + "/" + url.PathEscape(name) + ".png?size=" + strconv.Itoa(size)
	body, err := p.get(ctx, upstreamChatCDN, address, http.Header{"Accept": {"image/png, image/*;q=0.5"}}, maxPicture)
	if err != nil {
		return picture{}, err
	}
	return recognize(body)
}

// recognize accepts an image by its bytes, regardless of its declared type. SVG is not accepted,
// since it can contain scripts.
func recognize(data []byte) (picture, error) {
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		return picture{kind, data}, nil
	}
	return picture{}, errUnusable
}

// get makes one counted call. The text of every error is safe to log.
func (p *chatPlatform) get(ctx context.Context, upstream, address string, headers http.Header, limit int64) ([]byte, error) {
	began := time.Now()
	body, err := p.call(ctx, address, headers, limit)
	p.metrics.observe(upstream, outcomeOf(err), time.Since(began))
	if err != nil && !errors.Is(err, errNoPicture) {
		return nil, fmt.Errorf("%s: %w", upstream, err)
	}
	return body, err
}

func outcomeOf(err error) outcome {
	var known *callError
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(err, errNoPicture):
		return outcomeNotFound
	case errors.As(err, &known):
		return known.outcome
	}
	return outcomeUnusable
}

func (p *chatPlatform) call(ctx context.Context, address string, headers http.Header, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &callError{outcomeFailed, "not an address"}
	}
	req.Header = headers
	req.Header.Set("User-Agent", userAgent)
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, toCallError(err)
	}
	defer resp.Body.Close()
	if err := statusError(resp); err != nil {
		return nil, err
	}
	return readBody(resp, limit)
}

// statusError returns the error of a status other than 200.
func statusError(resp *http.Response) error {
	status := resp.StatusCode
	text := "status " + strconv.Itoa(status)
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusNotFound:
		return errNoPicture
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Errorf("%s: %w: %w", text, errUnauthorized, errUnusable)
	case status == http.StatusTooManyRequests:
		return &pauseError{retryAfter(resp.Header, time.Now()), &callError{outcomeLimited, text}}
	case status >= http.StatusInternalServerError:
		failure := &callError{outcomeServer, text}
		if wish := retryAfter(resp.Header, time.Now()); wish > 0 {
			return &pauseError{wish, failure}
		}
		return failure
	}
	return fmt.Errorf("%s: %w", text, errUnusable) // redirects too
}

// retryAfter parses Retry-After, which is seconds or a date; it returns 0 if the header is not
// usable.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return time.Duration(min(seconds, maxPause.Seconds()) * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return min(at.Sub(now), maxPause)
	}
	return 0
}

// readBody reads at most limit bytes, and rejects encoded bodies, since none was requested. The
// result has no spare capacity, since it may be cached.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, fmt.Errorf("unrequested content encoding: %w", errUnusable)
	}
	if resp.ContentLength > limit {
		return nil, fmt.Errorf("more than %d bytes: %w", limit, errUnusable)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, toCallError(err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("more than %d bytes: %w", limit, errUnusable)
	}
	return bytes.Clone(body), nil
}
