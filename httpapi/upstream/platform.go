package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"example.org/registry/events"
)

// Bounds of answers, in bytes.
const (
	maxPicture = 2 << 20
	maxProfile = 64 << 10 // about a user
)

// platform calls a Discord-compatible chat platform. It sends the token only to its API.
type platform struct {
	api, cdn string // without a trailing slash
	token    string
	client   *client
}

// findName returns the name of a user's picture. If there is no picture, the outcome of the error is outcomeNotFound.
func (p *platform) findName(ctx context.Context, user string) (string, error) {
	header := http.Header{"Accept": {"application/json"}}
	if p.token != "" {
		header.Set("Authorization", "Bot "+p.token)
	}
	body, err := p.client.get(ctx, upstreamChatAPI, p.api+"/users/"+url.PathEscape(user), header, maxProfile)

	// After 401 and 403, calls pause, since platforms block callers that keep trying with a wrong token.
	failure, ok := errors.AsType[*callError](err)
	if ok && (failure.status == http.StatusUnauthorized || failure.status == http.StatusForbidden) {
		failure.text += ", so the token may be missing or wrong"
		failure.pause = deniedPause
	}
	if err != nil {
		return "", err
	}

	var profile struct {
		Avatar string `json:"avatar"` // null for none
	}
	if err := json.Unmarshal(body, &profile); err != nil {
		return "", &callError{outcome: outcomeUnusable, text: "the answer is not the expected JSON"}
	}

	if profile.Avatar == "" {
		return "", &callError{outcome: outcomeNotFound, text: "the user has no picture"}
	}

	// The name becomes a part of an address, so only letters, digits, - and _ are accepted.
	if !events.IsID(profile.Avatar) {
		return "", &callError{outcome: outcomeUnusable, text: "the name of the picture is not one"}
	}
	return profile.Avatar, nil
}

// fetchPicture returns a picture and its media type, recognized by its bytes. SVG is not passed on, since it can contain
// scripts.
func (p *platform) fetchPicture(ctx context.Context, user, name string, size int) (media string, picture []byte, err error) {
	address := p.cdn + "/avatars/" + url.PathEscape(user) + "/" + url.PathEscape(name) + ".png?size=" + strconv.Itoa(size)
	picture, err = p.client.get(ctx, upstreamChatCDN, address, http.Header{"Accept": {"image/png, image/*;q=0.5"}}, maxPicture)
	if err != nil {
		return "", nil, err
	}

	switch media := http.DetectContentType(picture); media {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		return media, picture, nil
	}
	return "", nil, &callError{outcome: outcomeUnusable, text: "not a picture that is passed on"}
}
