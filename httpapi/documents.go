package httpapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
)

//go:embed openapi.yaml
var openAPIFile string

// openAPI is the description of this API; with a public address, that is its servers entry.
func openAPI(baseURL string) []byte {
	if baseURL == "" {
		return []byte(openAPIFile)
	}
	return []byte(strings.Replace(openAPIFile, "url: /\n", "url: "+strconv.Quote(baseURL)+"\n", 1))
}

// document is bytes that never change, in every encoding. Any goroutine may use it.
type document struct {
	tags   tagSet
	bodies [numEncodings][]byte
	kind   []string // Content-Type
	cache  []string // Cache-Control
	page   bool     // of the site
}

func newDocument(body []byte, comp *compressor) (*document, error) {
	sum := sha256.Sum256(body)
	d := &document{tags: newTagSet(hex.EncodeToString(sum[:16])), cache: []string{"public, max-age=300"}}
	for e := range numEncodings {
		if e == identity || len(body) < minEncoded {
			d.bodies[e] = body
			continue
		}
		encoded, err := comp.appendEncoded(nil, body, e)
		if err != nil {
			return nil, err
		}
		d.bodies[e] = encoded
	}
	return d, nil
}

// document answers with d, or with 304 where the reader holds it.
func (p *Public) document(d *document) handler {
	return func(c *gin.Context) error {
		e := negotiate(c.Request.Header["Accept-Encoding"])
		if len(d.bodies[identity]) < minEncoded {
			e = identity
		}
		h := c.Writer.Header()
		p.fixed.common(h)
		if d.page {
			p.fixed.pageHeaders(h, true)
		}
		h["Cache-Control"] = d.cache
		h.Set("Vary", "Accept-Encoding")
		h["Etag"] = d.tags.header[e]
		if d.tags.held(c.Request.Header["If-None-Match"]).any {
			c.Writer.WriteHeader(http.StatusNotModified)
			c.Writer.WriteHeaderNow()
			return nil
		}
		if e != identity {
			h["Content-Encoding"] = p.fixed.encodings[e]
		}
		c.Data(http.StatusOK, d.kind[0], d.bodies[e])
		return nil
	}
}
