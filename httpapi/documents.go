package httpapi

import (
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"example.org/registry/events"
)

//go:embed openapi.yaml
var openAPIFile string

// openAPI returns the description of this API. It names baseURL as the server, or "/" if baseURL is empty.
func openAPI(baseURL string) []byte {
	if baseURL == "" {
		return []byte(openAPIFile)
	}
	return []byte(strings.Replace(openAPIFile, "url: /\n", "url: "+strconv.Quote(baseURL)+"\n", 1))
}

// serveDocument returns a handler for a body that never changes.
func serveDocument(media, cacheControl string, body []byte) handler {
	tag := hashTag(body)
	return func(x *exchange) error {
		x.media = media
		return x.sendKept(policy{control: cacheControl}, tag, func() ([]byte, error) { return body, nil })
	}
}

// serveProofs redirects GET /proofs/{id} to base/{id}. The id is checked, so that it cannot lead anywhere else.
func serveProofs(base string) handler {
	return func(x *exchange) error {
		id := x.c.Param("id")
		if !events.IsID(id) {
			return errNotFound
		}

		x.cache = policy{control: "public, max-age=300"}
		x.c.Header("Location", base+"/"+id)
		x.writeAnswer(http.StatusFound, nil)
		return nil
	}
}

// securityTxtValid is how long a security.txt stays valid after it was requested. RFC 9116 wants less than a year.
const securityTxtValid = 180 * 24 * time.Hour

// serveSecurityText serves GET /.well-known/security.txt (RFC 9116).
func serveSecurityText(baseURL string) handler {
	return func(x *exchange) error {
		x.media = plainText
		return x.send(policy{control: "public, max-age=3600"}, "", []byte(securityText(baseURL, time.Now())))
	}
}

// securityText returns the file's text. RFC 2142 reserves the mailbox security in every domain for such reports.
func securityText(baseURL string, now time.Time) string {
	host := "localhost"
	if u, err := url.Parse(baseURL); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}

	expires := now.UTC().Truncate(24 * time.Hour).Add(securityTxtValid)
	text := fmt.Sprintf("Contact: mailto:security@%s\nExpires: %s\nPreferred-Languages: pl, en\n", host, expires.Format(time.RFC3339))
	if baseURL != "" {
		text += "Canonical: " + baseURL + "/.well-known/security.txt\n"
	}
	return text
}
