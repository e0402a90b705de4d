package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// proofs answers GET /proofs/{id} with the address of the proofs page, below base. The id is
// checked, so nothing in it can lead to another address.
func (p *Public) proofs(base string) handler {
	return func(c *gin.Context) error {
		id := c.Param("id")
		if !plainID(id) {
			return errNotFound
		}
		h := c.Writer.Header()
		p.fixed.common(h)
		h["Location"] = []string{base + "/" + id}
		h["Cache-Control"] = []string{"public, max-age=300"}
		h["Content-Length"] = []string{"0"}
		c.Writer.WriteHeader(http.StatusFound)
		c.Writer.WriteHeaderNow()
		return nil
	}
}
