package httpapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

func withSite(c *Config) { c.Site = true }

// The page names every path that the document describes.
func TestAPIPageNamesEveryPath(t *testing.T) {
	f := serve(t, withSite)
	a := f.fetch(t, http.MethodGet, "/api")
	if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", a.status, a.header)
	}
	var doc struct{ Paths map[string]any }
	if err := yaml.Unmarshal([]byte(openAPIFile), &doc); err != nil {
		t.Fatal(err)
	}
	for path := range doc.Paths {
		if !strings.Contains(a.body, "<b>GET</b> "+path+"<") {
			t.Errorf("%s is not on the page", path)
		}
	}
	if len(a.body) > 60_000 {
		t.Errorf("%d bytes", len(a.body))
	}
}

// The page shows the round that /api/status tells, also while the model is loading.
func TestStatusPage(t *testing.T) {
	f := serve(t, withSite, func(c *Config) {
		c.Health.State = func() State { return State{} }
		c.Status = StatusConfig{Database: func(context.Context) error { return nil }, Guard: "http://127.0.0.1:1"}
	})
	api, page := f.get(t, "/api/status"), f.fetch(t, http.MethodGet, "/status")
	_, stamp, _ := strings.Cut(api.body, `"checkedAt":"`)
	stamp, _, _ = strings.Cut(stamp, `"`)
	if page.status != http.StatusOK || !strings.Contains(page.body, `datetime="`+stamp+`"`) || strings.Count(page.body, `<li class="fails">`) != 2 || strings.Count(page.body, `<li class="unchecked">`) != 2 {
		t.Errorf("%s: %d %s", stamp, page.status, page.body)
	}
	if page.header.Get("Cache-Control") != "public, s-maxage=15" || page.header.Get("Content-Security-Policy") == "" {
		t.Errorf("%v", page.header)
	}
	if bad := f.fetch(t, http.MethodGet, "/status?a=%zz"); bad.status != http.StatusBadRequest || !strings.Contains(bad.body, "<!doctype html>") {
		t.Errorf("%d %s", bad.status, bad.body)
	}
}

// Crawlers must be let in to see the noindex of pages about persons.
func TestRobotsTxt(t *testing.T) {
	f := serve(t, withSite)
	if a := f.fetch(t, http.MethodGet, "/robots.txt"); a.body != "User-agent: *\nDisallow:\n" || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%q %v", a.body, a.header)
	}
}

// The icon is three PNG pictures in an ICO directory.
func TestFavicon(t *testing.T) {
	f := serve(t, withSite)
	icon := []byte(f.fetch(t, http.MethodGet, "/favicon.ico").body)
	if len(icon) < 6 || binary.LittleEndian.Uint32(icon) != 1<<16 || binary.LittleEndian.Uint16(icon[4:]) != 3 {
		t.Fatalf("% x", icon[:min(len(icon), 22)])
	}
	for i, size := range []int{16, 32, 48} {
		entry := icon[6+16*i:]
		from, length := binary.LittleEndian.Uint32(entry[12:]), binary.LittleEndian.Uint32(entry[8:])
		picture, err := png.Decode(bytes.NewReader(icon[from : from+length]))
		if err != nil || picture.Bounds().Dx() != size || int(entry[0]) != size {
			t.Errorf("%d: %v", size, err)
		}
	}
}

// RFC 9116: Contact and Expires are required, the latter less than a year ahead.
func TestSecurityTxt(t *testing.T) {
	now := time.Date(2026, time.November, 21, 17, 30, 0, 0, time.UTC)
	for _, c := range []struct{ contact, base, want string }{
		{"", "", "Contact: mailto:security@localhost\nExpires: 2027-05-20T00:00:00Z\nPreferred-Languages: pl, en\n"},
		{"", "https://rejestr.example:8443/x/", "Contact: mailto:security@rejestr.example\nExpires: 2027-05-20T00:00:00Z\nPreferred-Languages: pl, en\n" +
			"Canonical: https://rejestr.example:8443/x/.well-known/security.txt\n"},
		{"https://example.org/holes", "http://localhost", "Contact: https://example.org/holes\nExpires: 2027-05-20T00:00:00Z\nPreferred-Languages: pl, en\n" +
			"Canonical: http://localhost/.well-known/security.txt\n"},
	} {
		if got := securityTxt(c.contact, c.base, now); got != c.want {
			t.Errorf("%q, %q: %q", c.contact, c.base, got)
		}
	}
	a := serve(t, withSite, func(c *Config) { c.Contact = "tel:+48123456789" }).fetch(t, http.MethodGet, "/.well-known/security.txt")
	_, after, _ := strings.Cut(a.body, "Expires: ")
	line, _, _ := strings.Cut(after, "\n")
	expires, err := time.Parse(time.RFC3339, line)
	if err != nil || time.Until(expires) < 30*24*time.Hour || time.Until(expires) > 365*24*time.Hour {
		t.Errorf("%v %v", expires, err)
	}
	if a.header.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.HasPrefix(a.body, "Contact: tel:+48123456789\n") {
		t.Errorf("%q %v", a.body, a.header)
	}
}

func TestCheckContact(t *testing.T) {
	for contact, good := range map[string]bool{
		"": true, "mailto:a@example.org": true, "https://example.org/x": true, "tel:+48-1": true, "a@example.org": false,
		"http://example.org": false, "mailto:": false, "https:///x": false, "javascript:alert(1)": false,
		"mailto:a@example.org\nContact: mailto:b@example.org": false, "https://exämple.org": false, "%zz": false,
	} {
		if err := CheckContact(contact); (err == nil) != good {
			t.Errorf("%q: %v", contact, err)
		}
	}
}

// Without the site its paths are unknown ones.
func TestWithoutSite(t *testing.T) {
	f := serve(t, func(c *Config) { c.Site = false })
	for _, path := range []string{"/", "/api", "/status", "/robots.txt", "/favicon.ico", "/.well-known/security.txt", "/scammers"} {
		f.wantError(t, http.StatusNotFound, "Nie znaleziono.", http.MethodGet, path)
	}
}
