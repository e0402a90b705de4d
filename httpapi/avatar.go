package httpapi

import (
	"strings"

	"example.org/registry/events"
)

// avatarPath is followed by a user's id.
const avatarPath = "/api/chat/avatar/"

// isAvatar reports whether a path is avatarPath and an id.
func isAvatar(path string) bool {
	user, ok := strings.CutPrefix(path, avatarPath)
	return ok && user != "" && !strings.Contains(user, "/")
}

// defaultAvatar is the default size of an avatar, in pixels.
const defaultAvatar = 128

// parseAvatar checks a user's id and reads the size, in pixels, from a query string. It is a pure function.
func parseAvatar(user, raw string) (size int, err error) {
	if !events.IsID(user) {
		return 0, invalid("chatUserId")
	}

	p := readParams(raw)
	size = p.readNumber("size", 16, 512, defaultAvatar)
	isPowerOfTwo := size&(size-1) == 0 // 16, 32, 64, 128, 256 or 512
	if !isPowerOfTwo {
		p.refuse("size")
	}
	return size, p.err
}

// serveAvatar serves GET /api/chat/avatar/{chatUserId}, always with a picture (httpapi/CONTRACT.md#avatars). It needs no read
// model.
func serveAvatar(x *exchange) error {
	user := x.c.Param("chatUserId")
	size, err := parseAvatar(user, x.query())
	if err != nil {
		return err
	}

	picture, err := x.api.upstreams.Avatar(user, size)
	if err != nil {
		return err
	}

	x.media = picture.Type
	cache := policy{control: "public, max-age=3600"}
	if picture.Failed { // the platform may have a better picture soon
		cache = policy{control: "public, max-age=60"}
	}
	return x.send(cache, "", picture.Bytes)
}
