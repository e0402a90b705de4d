package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// The document names the public address as its server.
func TestOpenAPIServer(t *testing.T) {
	for base, want := range map[string]string{"": "/", "https://registry.example.org": "https://registry.example.org"} {
		f := serve(t, func(c *Config) { c.BaseURL = base })
		var doc struct {
			OpenAPI string
			Servers []struct{ URL string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(f.get(t, "/openapi.yaml").body), &doc))
		if len(doc.Servers) != 1 || doc.Servers[0].URL != want || doc.OpenAPI != "3.1.0" {
			t.Errorf("%+v", doc)
		}
	}
}

func TestProofs(t *testing.T) {
	f := serve(t)
	for _, id := range []string{"p-1", "A_z-9", strings.Repeat("x", 64)} {
		a := f.get(t, "/proofs/"+id+"?x=%zz")
		if want := "https://proofs.example.org/p/" + id; a.status != http.StatusFound || a.header.Get("Location") != want {
			t.Errorf("%s: %d %v", id, a.status, a.header)
		}
	}
	for _, id := range []string{strings.Repeat("x", 65), "a.b", "..", "%2e%2e", "a%2Fb", "%0d%0aSet-Cookie:x", "ą", "%00", "a%20"} {
		f.wantError(t, http.StatusNotFound, "Nie znaleziono.", http.MethodGet, "/proofs/"+id)
	}
}

// RFC 9116: Contact and Expires are required, the latter less than a year ahead.
func TestSecurityTxt(t *testing.T) {
	now := time.Date(2026, time.November, 21, 17, 30, 0, 0, time.UTC)
	for _, c := range []struct{ base, want string }{
		{"", "Contact: mailto:security@localhost\nExpires: 2027-05-20T00:00:00Z\nPreferred-Languages: pl, en\n"},
		{"https://rejestr.example:8443/x", "Contact: mailto:security@rejestr.example\nExpires: 2027-05-20T00:00:00Z\nPreferred-Languages: pl, en\n" +
			"Canonical: https://rejestr.example:8443/x/.well-known/security.txt\n"},
	} {
		if got := securityText(c.base, now); got != c.want {
			t.Errorf("%q: %q", c.base, got)
		}
	}
	a := serve(t, withSite).fetch(t, http.MethodGet, "/.well-known/security.txt")
	_, after, _ := strings.Cut(a.body, "Expires: ")
	line, _, _ := strings.Cut(after, "\n")
	expires, err := time.Parse(time.RFC3339, line)
	if err != nil || time.Until(expires) < 30*24*time.Hour || time.Until(expires) > 365*24*time.Hour {
		t.Errorf("%v %v", expires, err)
	}
	if a.header.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.HasPrefix(a.body, "Contact: mailto:security@") {
		t.Errorf("%q %v", a.body, a.header)
	}
}
