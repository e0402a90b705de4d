package httpapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
)

//go:embed openapi.yaml
var openAPIFile string

// openAPI returns the description of this API, with the public address, if there is one, as its server.
func openAPI(baseURL string) []byte {
	if baseURL == "" {
		return []byte(openAPIFile)
	}
	return []byte(strings.Replace(openAPIFile, "url: /\n", "url: "+strconv.Quote(baseURL)+"\n", 1))
}

// apiDocuments adds the descriptions of the API and of the events.
func (p *Public) apiDocuments(cfg Config) error {
	for path, body := range map[string][]byte{"/openapi.yaml": openAPI(cfg.BaseURL), "/asyncapi.yaml": cfg.AsyncAPI} {
		if body == nil {
			continue
		}
		if err := p.file(path, "application/yaml; charset=utf-8", "public, max-age=300", body); err != nil {
			return err
		}
	}
	return nil
}

// file adds a document that never changes.
func (p *Public) file(path, contentType, cacheControl string, body []byte) error {
	d, err := newDocument(body, contentType, cacheControl, p.compressor)
	if err != nil {
		return err
	}
	p.get(path, p.document(d))
	return nil
}

// document is a body that never changes, in every encoding. Any goroutine may use it.
type document struct {
	tags         tagSet
	variants     [numEncodings][]byte
	contentType  string
	cacheControl []string
	html         bool // a page of the site
}

func newDocument(body []byte, contentType, cacheControl string, comp *compressor) (*document, error) {
	sum := sha256.Sum256(body)
	d := &document{tags: newTagSet(hex.EncodeToString(sum[:16])), contentType: contentType, cacheControl: []string{cacheControl}}
	for e := range numEncodings {
		if e.worth(body) == identity {
			d.variants[e] = body
			continue
		}
		encoded, err := comp.appendEncoded(nil, body, e)
		if err != nil {
			return nil, err
		}
		d.variants[e] = encoded
	}
	return d, nil
}

// document answers with d, or with 304 where the reader holds it.
func (p *Public) document(d *document) handler {
	return func(c *gin.Context) error {
		e := negotiate(c.Request.Header["Accept-Encoding"]).worth(d.variants[identity])
		h := c.Writer.Header()
		p.fixed.common(h)
		if d.html {
			p.fixed.pageHeaders(h, true)
		}
		h["Cache-Control"] = d.cacheControl
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
		c.Data(http.StatusOK, d.contentType, d.variants[e])
		return nil
	}
}

// proofs answers GET /proofs/{id} with the address of the proofs page, below base. The id is checked, so
// nothing in it leads to another address.
func (p *Public) proofs(base string) handler {
	return func(c *gin.Context) error {
		id := c.Param("id")
		if !events.IsID(id) {
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

// securityTxtValid is how long security.txt says that it can be relied on, counted from the request. RFC 9116
// wants less than a year.
const securityTxtValid = 180 * 24 * time.Hour

// securityTxt answers GET /.well-known/security.txt (RFC 9116).
func (p *Public) securityTxt(cfg Config) handler {
	return func(c *gin.Context) error {
		h := c.Writer.Header()
		p.fixed.common(h)
		h["Cache-Control"] = []string{"public, max-age=3600"}
		c.Data(http.StatusOK, "text/plain; charset=utf-8", []byte(securityTxt(cfg.Contact, cfg.BaseURL, time.Now())))
		return nil
	}
}

// securityTxt is the file's text. Without a contact it names the mailbox that RFC 2142 has every domain keep
// for this.
func securityTxt(contact, baseURL string, now time.Time) string {
	u, err := url.Parse(baseURL)
	if contact == "" {
		contact = "mailto:security@localhost"
		if err == nil && u.Hostname() != "" {
			contact = "mailto:security@" + u.Hostname()
		}
	}
	expires := now.UTC().Truncate(24 * time.Hour).Add(securityTxtValid)
	text := fmt.Sprintf("Contact: %s\nExpires: %s\nPreferred-Languages: pl, en\n", contact, expires.Format(time.RFC3339))
	if baseURL != "" {
		text += "Canonical: " + strings.TrimSuffix(baseURL, "/") + "/.well-known/security.txt\n"
	}
	return text
}

// CheckContact rejects what RFC 9116 does not take for a contact: anything but a mailto:, https: or tel: address.
// "" is fine.
func CheckContact(contact string) error {
	if contact == "" {
		return nil
	}
	u, err := url.Parse(contact)
	if err != nil || strings.ContainsFunc(contact, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%q is not an address", contact)
	}
	known := u.Scheme == "https" && u.Host != "" || (u.Scheme == "mailto" || u.Scheme == "tel") && u.Opaque != ""
	if !known {
		return fmt.Errorf("%q is not a mailto:, https: or tel: address", contact)
	}
	return nil
}
