package httpapi

import "github.com/gin-gonic/gin"

// status answers GET /api/status. Nothing is probed in this version of the service, and an
// answer that says so is better than one that looks like a failure of the components.
func (p *Public) status(c *gin.Context) error {
	if err := scanQuery(c.Request.URL.RawQuery, nil, nil); err != nil {
		return err
	}
	return errLoading
}

// avatar answers GET /api/chat/avatar/{chatUserId}: the parameters are checked, pictures are not
// served in this version of the service.
func (p *Public) avatar(c *gin.Context) error {
	sandboxed(c)
	if _, err := parseAvatar(c.Param("chatUserId"), c.Request.URL.RawQuery); err != nil {
		return err
	}
	return errLoading
}

// sandboxed marks an answer as one in which nothing may run (API contract, avatars).
func sandboxed(c *gin.Context) {
	c.Writer.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
}
