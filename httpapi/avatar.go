package httpapi

import (
	"github.com/gin-gonic/gin"

	"example.org/registry/events"
)

// avatars is where the pictures are. Nothing may run in any answer there, failures included.
const avatars = "/api/chat/avatar/"

// avatar answers GET /api/chat/avatar/{chatUserId}, always with a picture
// (httpapi/CONTRACT.md#avatars). It needs no read model.
func (p *Public) avatar(c *gin.Context) (answer, error) {
	user := c.Param("chatUserId")
	size, err := parseAvatar(user, c.Request.URL.RawQuery)
	if err != nil {
		return answer{}, err
	}
	picture, err := p.upstreams.Avatar(c.Request.Context(), user, size)
	if err != nil {
		return answer{}, err
	}
	a := answer{cache: cached("public, max-age=3600"), media: []string{picture.Type}, content: newContent(picture.Bytes)}
	if picture.Failed {
		a.cache = cached("public, max-age=60")
	}
	return a, nil
}

// defaultAvatar is the size of an avatar when none is asked for, in pixels.
const defaultAvatar = 128

// parseAvatar checks the path parameter and the query string of an avatar and returns the size
// in pixels. It is a pure function.
func parseAvatar(user, raw string) (size int, err error) {
	if !events.IsID(user) {
		return 0, invalid("chatUserId")
	}
	names, values := [1]string{"size"}, [1]value{}
	p := readParams(raw, names[:], values[:])
	size = p.number(0, 16, 512, defaultAvatar)
	if size&(size-1) != 0 { // 16, 32, 64, 128, 256, 512
		p.refuse(0)
	}
	return size, p.err
}
