package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// avatarRoute is the pattern of the avatars' paths.
const avatarRoute = "/api/chat/avatar/:chatUserId"

// avatar answers GET /api/chat/avatar/{chatUserId}: a picture in any case (API contract,
// avatars). It does not depend on the read model.
func (p *Public) avatar(c *gin.Context) error {
	user := c.Param("chatUserId")
	size, err := parseAvatar(user, c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	found, err := p.avatars.of(c.Request.Context(), user, size)
	if err != nil {
		return err
	}
	cache, picture := p.avatarCache, found.picture
	if found.result == avatarFailed {
		cache = p.fallbackCache
	}
	if found.result != avatarFound {
		if picture, err = p.identicons.of(user, size); err != nil {
			return err
		}
	}
	h := c.Writer.Header()
	p.fixed.common(h)
	sandboxed(c)
	h["Cache-Control"] = cache
	c.Data(http.StatusOK, picture.Type, picture.Bytes)
	return nil
}

// sandboxed marks an answer as one in which nothing may run (API contract, avatars).
func sandboxed(c *gin.Context) {
	c.Writer.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
}

// defaultAvatar is the size of an avatar when none is asked for, in pixels.
const defaultAvatar = 128

// parseAvatar checks the path parameter and the query string of an avatar and returns the size
// in pixels. It is a pure function.
func parseAvatar(user, raw string) (size int, err error) {
	if !plainID(user) {
		return 0, invalid("chatUserId")
	}
	names, values := [1]string{"size"}, [1]value{}
	if err := scanQuery(raw, names[:], values[:]); err != nil {
		return 0, err
	}
	p := params{names: names[:], values: values[:]}
	size = p.number(0, 16, 512, defaultAvatar)
	if size&(size-1) != 0 { // 16, 32, 64, 128, 256, 512
		p.refuse(0)
	}
	return size, p.err
}
