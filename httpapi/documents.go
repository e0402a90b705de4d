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

	"example.org/registry/events"
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

// document returns a handler for a document that never changes.
func document(media, cacheControl string, body []byte) handler {
	return static(media, noPage, cacheControl, body)
}

// pageDocument returns a handler for a page that never changes and that search engines may show.
func pageDocument(cacheControl string, body []byte) handler {
	return static("", indexedPage, cacheControl, body)
}

func static(media string, kind page, cacheControl string, body []byte) handler {
	sum := sha256.Sum256(body)
	tag := hex.EncodeToString(sum[:16])
	return func(x *exchange) error {
		x.media, x.page = media, kind
		if sent, err := x.sendKnown(policy{control: cacheControl}, tag); sent || err != nil {
			return err
		}
		return x.send(body)
	}
}

// proofs serves GET /proofs/{id} with the address of the proofs page, below base. The id is checked, so it cannot lead to
// another address.
func proofs(base string) handler {
	return func(x *exchange) error {
		id := x.c.Param("id")
		if !events.IsID(id) {
			return errNotFound
		}
		return x.sendRedirect(http.StatusFound, base+"/"+id)
	}
}

// securityTxtValid is how long security.txt claims to be valid, counted from the request. RFC 9116
// wants less than a year.
const securityTxtValid = 180 * 24 * time.Hour

// securityTxt serves GET /.well-known/security.txt (RFC 9116).
func securityTxt(contact, baseURL string) handler {
	return func(x *exchange) error {
		x.media, x.policy = plainText, policy{control: "public, max-age=3600"}
		return x.send([]byte(securityText(contact, baseURL, time.Now())))
	}
}

const plainText = "text/plain; charset=utf-8"

// securityText is the file's text. Without a contact it names the mailbox that RFC 2142 reserves for
// this in every domain.
func securityText(contact, baseURL string, now time.Time) string {
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
