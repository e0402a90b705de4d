package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Platform is where the pictures of a chat platform's users are asked for. Any goroutine may
// call it; both methods keep to ctx and read no more than a picture may have.
//
// Their errors: ErrNoPicture; a [Pause] when the platform says that it is asked too much; an
// error that wraps ErrUnusable when it answered with something that is not passed on; any other
// when it failed. No error's text holds a user's id or the token.
type Platform interface {
	// Avatar is the name of the user's picture.
	Avatar(ctx context.Context, user string) (name string, err error)
	// Picture is the picture of that name; size is the wished side in pixels.
	Picture(ctx context.Context, user, name string, size int) (Picture, error)
}

// Picture is an image as it is passed on. Its bytes are shared: nobody changes them.
type Picture struct {
	Type  string // image/png, image/jpeg, image/webp or image/gif, as the bytes say
	Bytes []byte // at most 2 MiB
}

// What a Platform answers besides a picture.
var (
	ErrNoPicture = errors.New("no such user, or one without a picture")
	ErrUnusable  = errors.New("not a picture that is passed on")
)

// Pause is a platform's wish not to be asked for a while.
type Pause struct {
	For time.Duration // zero: it did not say how long
	Err error         // what it answered
}

func (p *Pause) Error() string { return p.Err.Error() }
func (p *Pause) Unwrap() error { return p.Err }

// maxPicture is how much of an image is passed on, in bytes (API contract, avatars).
const maxPicture = 2 << 20

// pictureOf recognises an image by its bytes, whatever it was called (API contract, avatars).
// SVG is none of the four: it can hold scripts.
func pictureOf(data []byte) (Picture, error) {
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		return Picture{kind, data}, nil
	}
	return Picture{}, ErrUnusable
}
