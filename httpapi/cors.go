package httpapi

import (
	"net/http"
	"time"

	"github.com/gin-contrib/cors"
	"github.com/gin-gonic/gin"
)

// newPreflight answers CORS preflights (httpapi/CONTRACT.md#cors). gin-contrib/cors joins the names
// of allowed headers without the space that the contract shows, so otherMethod sets that one
// header.
func newPreflight() gin.HandlerFunc {
	return cors.New(cors.Config{AllowAllOrigins: true, AllowMethods: []string{http.MethodGet}, MaxAge: 24 * time.Hour})
}

// otherMethod answers a request for a documented path by another method than GET: 204 to a
// preflight, 405 to anything else (httpapi/CONTRACT.md#methods). gin has set Allow.
func (p *Public) otherMethod(c *gin.Context) (answer, error) {
	if !isPreflight(c.Request) {
		return answer{}, errMethod
	}
	c.Writer.Header().Del("Allow")
	return answer{
		finish: p.allow,
		cache:  &policy{}, // a preflight has a cache of its own
		more:   []string{"Access-Control-Allow-Headers", "Registry-Min-Sequence, If-None-Match"},
	}, nil
}

// allow answers a preflight. gin-contrib/cors passes over a request from the host's own origin,
// which the contract treats like any other. No origin is of the host " ".
func (p *Public) allow(c *gin.Context) {
	c.Request = c.Request.WithContext(c.Request.Context())
	c.Request.Host = " "
	p.preflight(c)
}

// isPreflight reports whether r is a preflight; gin-contrib/cors takes every OPTIONS with an Origin
// for one.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions &&
		r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}
