package httpapi

import (
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/respond"
)

//go:embed openapi.yaml
var openAPIFile string

// openAPI returns the description of this API. If there is a public address, it is the document's
// server.
func openAPI(baseURL string) []byte {
	if baseURL == "" {
		return []byte(openAPIFile)
	}
	return []byte(strings.Replace(openAPIFile, "url: /\n", "url: "+strconv.Quote(baseURL)+"\n", 1))
}

// apiDocuments adds the descriptions of the API and of the events.
func (p *Public) apiDocuments(cfg Config) {
	const media, keep = "application/yaml; charset=utf-8", "public, max-age=300"
	p.get("/openapi.yaml", always(document(media, keep, openAPI(cfg.BaseURL))))
	if cfg.AsyncAPI != nil {
		p.get("/asyncapi.yaml", always(document(media, keep, cfg.AsyncAPI)))
	}
}

// document returns a response with a body that never changes.
func document(media, cacheControl string, body []byte) respond.Response {
	return respond.Response{Media: []string{media}, Cache: respond.Cached(cacheControl), Tags: respond.TagsOf(body), Body: respond.NewBody(body)}
}

// pageDocument returns a page that never changes and that search engines may show.
func pageDocument(cacheControl string, body []byte) respond.Response {
	return respond.Response{Page: respond.IndexedPage, Cache: respond.Cached(cacheControl), Tags: respond.TagsOf(body), Body: respond.NewBody(body)}
}

// always returns a handler with a single response.
func always(a respond.Response) handler {
	return func(*gin.Context) (respond.Response, error) { return a, nil }
}

// proofs serves GET /proofs/{id} with the address of the proofs page, below base. The id is
// checked, so it cannot lead to another address.
func proofs(base string) handler {
	return func(c *gin.Context) (respond.Response, error) {
		id := c.Param("id")
		if !events.IsID(id) {
			return respond.Response{}, errNotFound
		}
		return respond.Redirect(http.StatusFound, base+"/"+id), nil
	}
}

// securityTxtValid is how long security.txt claims to be valid, counted from the request. RFC 9116
// wants less than a year.
const securityTxtValid = 180 * 24 * time.Hour

// securityTxt serves GET /.well-known/security.txt (RFC 9116).
func (p *Public) securityTxt(cfg Config) handler {
	return func(*gin.Context) (respond.Response, error) {
		text := securityTxt(cfg.Contact, cfg.BaseURL, time.Now())
		return respond.Response{Media: []string{plainText}, Cache: respond.Cached("public, max-age=3600"), Body: respond.NewBody([]byte(text))}, nil
	}
}

const plainText = "text/plain; charset=utf-8"

// securityTxt is the file's text. Without a contact it names the mailbox that RFC 2142 reserves for
// this in every domain.
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

// CheckContact rejects addresses that RFC 9116 does not allow as a contact: all but a mailto:,
// https: or tel: address. "" is valid.
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
