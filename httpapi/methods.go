package httpapi

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// otherMethod answers what is not GET on a path that exists: 405, HEAD included, or 204 to a
// preflight (API contract, CORS). gin has set Allow. The few headers of a preflight are written
// here because gin-contrib/cors answers 204 to any OPTIONS with a foreign Origin, none to one
// with its own, and names the allowed origin only where it sees an Origin.
func (p *Public) otherMethod(c *gin.Context) error {
	if strings.HasPrefix(c.Request.URL.Path, "/api/chat/avatar/") {
		sandboxed(c)
	}
	if !preflight(c.Request) {
		return errMethod
	}
	h := c.Writer.Header()
	p.fixed.common(h)
	h.Del("Allow")
	h.Set("Access-Control-Allow-Methods", http.MethodGet)
	h.Set("Access-Control-Allow-Headers", "Registry-Min-Sequence, If-None-Match")
	h.Set("Access-Control-Max-Age", "86400")
	c.Writer.WriteHeader(http.StatusNoContent)
	c.Writer.WriteHeaderNow()
	return nil
}

func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions &&
		r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}
