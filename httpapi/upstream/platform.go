package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.org/registry/events"
)

// Bounds of answers, in bytes.
const (
	maxPicture = 2 << 20
	maxProfile = 64 << 10 // about a user
)

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

// platform calls a Discord-compatible chat platform. It sends the token only to its API.
type platform struct {
	api, cdn string // without a trailing slash
	token    Secret
	client   *client
}

// findName returns the name of a user's picture, or "" if there is none.
func (p *platform) findName(ctx context.Context, user string) (string, error) {
	header := http.Header{"Accept": {"application/json"}}
	if p.token != "" {
		header.Set("Authorization", "Bot "+string(p.token))
	}
	body, err := p.client.get(ctx, upstreamChatAPI, p.api+"/users/"+url.PathEscape(user), header, maxProfile)
	failure, failed := errors.AsType[*callError](err)
	switch {
	case failed && failure.outcome == outcomeNotFound:
		return "", nil
	case failed && (failure.status == http.StatusUnauthorized || failure.status == http.StatusForbidden):
		failure.text += ", so the token may be missing or wrong"
		failure.pause = maxBackOff // platforms block callers that keep trying
		return "", failure
	case err != nil:
		return "", err
	}

	var profile struct {
		Avatar string `json:"avatar"` // null for none
	}
	if err := json.Unmarshal(body, &profile); err != nil {
		return "", &callError{outcome: outcomeUnusable, text: "the answer is not the expected JSON"}
	}
	if profile.Avatar != "" && !events.IsID(profile.Avatar) { // it becomes part of an address
		return "", &callError{outcome: outcomeUnusable, text: "the name of the picture is not one"}
	}
	return profile.Avatar, nil
}

// fetchPicture returns a picture and its media type, by its bytes, whatever they are declared as. SVG is
// not passed on, since it can contain scripts.
func (p *platform) fetchPicture(ctx context.Context, user, name string, size int) (kind string, picture []byte, err error) {
	address := p.cdn + "/avatars/" + url.PathEscape(user) + "/" + url.PathEscape(name) + ".png?size=" + strconv.Itoa(size)
	picture, err = p.client.get(ctx, upstreamChatCDN, address, http.Header{"Accept": {"image/png, image/*;q=0.5"}}, maxPicture)
	if err != nil {
		return "", nil, err
	}

	switch kind := http.DetectContentType(picture); kind {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		return kind, picture, nil
	}
	return "", nil, &callError{outcome: outcomeUnusable, text: "not a picture that is passed on"}
}

// How long calls to the platform pause.
const (
	minPause     = time.Second
	maxPause     = time.Hour       // whatever it asks for
	defaultPause = 5 * time.Second // if it limits the rate and does not say for how long
	maxBackOff   = time.Minute     // after failures
	tolerated    = 2               // failures in a row that may be accidents
)

// backOff pauses calls to the platform while it asks for that, and from the third failure in a row for
// 1 s, then 2 s, up to a minute. The zero value allows calls.
type backOff struct {
	mu       sync.Mutex
	until    time.Time // no calls before
	failures int       // in a row
	counted  time.Time // when the last one was counted
}

// allows reports whether a call may begin now.
func (b *backOff) allows() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !time.Now().Before(b.until)
}

// record takes the outcome of calls that began at began. Failures side by side count once.
func (b *backOff) record(began time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	pause := time.Duration(0)

	failure, _ := errors.AsType[*callError](err)
	switch {
	case err == nil, failure != nil && failure.outcome == outcomeUnusable && failure.pause == 0:
		b.failures = 0
	case failure != nil && failure.pause > 0:
		pause = min(max(failure.pause, minPause), maxPause)
	case b.failures == 0 || !began.Before(b.counted):
		b.failures++
		b.counted = now
		if b.failures > tolerated {
			pause = min(maxBackOff, minPause<<min(b.failures-tolerated-1, 10))
		}
	}

	if until := now.Add(pause); until.After(b.until) {
		b.until = until
	}
}

// isPrivateHost reports whether a host is in the operator's own network: a private or loopback address,
// localhost, or a name without a dot.
func isPrivateHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return strings.EqualFold(host, "localhost") || !strings.Contains(host, ".")
}
