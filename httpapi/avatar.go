package httpapi

import (
	"strings"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/respond"
)

// avatars is the path of the pictures.
const avatars = "/api/chat/avatar/"

// isAvatar reports whether a path is that of an avatar. Nothing in its response may run, failures
// included (httpapi/CONTRACT.md#avatars).
func isAvatar(path string) bool {
	user, ok := strings.CutPrefix(path, avatars)
	return ok && user != "" && !strings.Contains(user, "/")
}

// avatar serves GET /api/chat/avatar/{chatUserId}, always with a picture
// (httpapi/CONTRACT.md#avatars). It needs no read model.
func (p *Public) avatar(c *gin.Context) (respond.Response, error) {
	user := c.Param("chatUserId")
	size, err := parseAvatar(user, c.Request.URL.RawQuery)
	if err != nil {
		return respond.Response{}, err
	}
	picture, err := p.upstreams.Avatar(user, size)
	if err != nil {
		return respond.Response{}, err
	}
	a := respond.Response{Cache: respond.Cached("public, max-age=3600"), Media: []string{picture.Type}, Body: respond.NewBody(picture.Bytes)}
	if picture.Failed {
		a.Cache = respond.Cached("public, max-age=60")
	}
	return a, nil
}

// defaultAvatar is the default size of an avatar, in pixels.
const defaultAvatar = 128

// parseAvatar checks the path parameter and the query string of an avatar and returns the size
// in pixels. It is a pure function.
func parseAvatar(user, raw string) (size int, err error) {
	if !events.IsID(user) {
		return 0, invalid("chatUserId")
	}
	p := readParams(raw)
	size = p.number("size", 16, 512, defaultAvatar)
	if size&(size-1) != 0 { // 16, 32, 64, 128, 256, 512
		p.refuse("size")
	}
	return size, p.err
}
