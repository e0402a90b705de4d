package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// securityTxtValid is how long the file says that it can be relied on; RFC 9116 wants less than a year. Who serves
// it is there, so that it is counted from the day it is asked for.
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

// securityTxt is the file's text. Without a contact it is the mailbox that RFC 2142 has every domain keep for this.
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

// CheckContact accepts "" and what RFC 9116 takes for a contact: an address of the schemes mailto, https and tel.
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
