package respond

import (
	"net/http"
	"time"

	"github.com/gin-contrib/cors"
	"github.com/gin-gonic/gin"
)

// NewPreflight returns a handler for CORS preflights (httpapi/CONTRACT.md#cors). To the host's own
// origin, which sends none, gin-contrib/cors adds no headers.
func NewPreflight() gin.HandlerFunc {
	answer := cors.New(cors.Config{AllowAllOrigins: true, AllowMethods: []string{http.MethodGet}, AllowHeaders: []string{"*"}, MaxAge: 24 * time.Hour})
	return func(c *gin.Context) {
		c.Status(http.StatusNoContent)
		answer(c)
	}
}

// IsPreflight reports whether r is a preflight; gin-contrib/cors treats every OPTIONS with an
// Origin as one.
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions &&
		r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}
