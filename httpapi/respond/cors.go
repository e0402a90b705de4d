package respond

import (
	"net/http"
	"time"

	"github.com/gin-contrib/cors"
	"github.com/gin-gonic/gin"
)

// NewPreflight returns a handler for CORS preflights (httpapi/CONTRACT.md#cors). gin-contrib/cors
// joins the names of allowed headers without the space in the contract, so the caller sets that one
// header. It also ignores a request from the host's own origin, which the contract treats like any
// other; the host " " avoids that, since it matches no origin.
func NewPreflight() gin.HandlerFunc {
	answer := cors.New(cors.Config{AllowAllOrigins: true, AllowMethods: []string{http.MethodGet}, MaxAge: 24 * time.Hour})
	return func(c *gin.Context) {
		c.Request = c.Request.WithContext(c.Request.Context())
		c.Request.Host = " "
		answer(c)
	}
}

// IsPreflight reports whether r is a preflight; gin-contrib/cors treats every OPTIONS with an
// Origin as one.
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions &&
		r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}
