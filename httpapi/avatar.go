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
