package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// maxProfile is how much of the answer about a user is read, in bytes.
const maxProfile = 64 << 10

// chatPlatform asks a Discord-compatible platform (API contract, avatars). The token goes to its
// API and nowhere else.
type chatPlatform struct {
	api, cdn string // without a trailing slash
	token    Secret
	client   *http.Client
	metrics  *upstreamMetrics
	bodies   sync.Pool // of *bytes.Buffer; a picture's size at most
}

// newChatPlatform takes addresses that AvatarConfig.Check has seen.
func newChatPlatform(cfg AvatarConfig, m *upstreamMetrics) (*chatPlatform, error) {
	api, err := upstreamURL(cfg.API)
	if err != nil {
		return nil, err
	}
	cdn, err := upstreamURL(cfg.CDN)
	if err != nil {
		return nil, err
	}
	guard := newDialGuard(api, cdn)
	return &chatPlatform{
		api:     strings.TrimRight(cfg.API, "/"),
		cdn:     strings.TrimRight(cfg.CDN, "/"),
		token:   cfg.Token,
		client:  newUpstreamClient(newTransport(guard.dial)),
		metrics: m,
	}, nil
}

// Avatar implements Platform.
func (p *chatPlatform) Avatar(ctx context.Context, user string) (string, error) {
	headers := http.Header{"Accept": {"application/json"}}
	if p.token != "" {
		headers.Set("Authorization", "Bot "+string(p.token))
	}
	body, err := p.get(ctx, upstreamChatAPI, p.api+"/users/"+url.PathEscape(user), headers, maxProfile)
	if errors.Is(err, errUnauthorised) {
		return "", &Pause{unauthorisedPause, err} // platforms block those who go on asking
	}
	if err != nil {
		return "", err
	}
	return avatarName(body)
}

// avatarName reads the one member that is needed of an answer about a user.
func avatarName(body []byte) (string, error) {
	var profile struct {
		Avatar *string `json:"avatar"`
	}
	if err := json.Unmarshal(body, &profile); err != nil {
		return "", fmt.Errorf("the answer is not the JSON expected: %w", ErrUnusable)
	}
	switch {
	case profile.Avatar == nil || *profile.Avatar == "":
		return "", ErrNoPicture
	case !plainID(*profile.Avatar): // it becomes part of an address
		return "", fmt.Errorf("the picture's name is not one: %w", ErrUnusable)
	}
	return *profile.Avatar, nil
}

// Picture implements Platform.
func (p *chatPlatform) Picture(ctx context.Context, user, name string, size int) (Picture, error) {
	address := p.cdn + "/avatars/" + url.PathEscape(user) + "/" + url.PathEscape(name) + ".png?size=" + strconv.Itoa(size)
	body, err := p.get(ctx, upstreamChatCDN, address, http.Header{"Accept": {"image/png, image/*;q=0.5"}}, maxPicture)
	if err != nil {
		return Picture{}, err
	}
	return pictureOf(body)
}

// Close lets go of idle connections.
func (p *chatPlatform) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
