package httpapi

import (
	"bytes"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/upstream"
)

// wantAvatar asks, and compares the answer with a picture, "" for a drawn one, and the headers of one.
func (f *fixture) wantAvatar(t testing.TB, user, query, picture string, maxAge int) {
	t.Helper()
	a := f.get(t, "/api/chat/avatar/"+user+query)
	if picture == "" {
		size := 128
		if _, text, ok := strings.Cut(query, "size="); ok && text != "%20" {
			size, _ = strconv.Atoi(text) // of what tests ask for
		}
		img, err := png.Decode(bytes.NewReader(a.raw))
		if err != nil || img.Bounds().Dx() != size {
			t.Errorf("%s%s: not drawn at %d: %v", user, query, size, err)
		}
		picture = a.body
	}
	if a.status != http.StatusOK || a.body != picture {
		t.Errorf("%s%s: %d with %d bytes %.20q, want %d bytes", user, query, a.status, len(a.body), a.body, len(picture))
	}
	for name, want := range map[string]string{
		"Content-Type": "image/png", "Cache-Control": "public, max-age=" + strconv.Itoa(maxAge), "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Length": strconv.Itoa(len(picture)),
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s%s: %s: %q, want %q", user, query, name, got, want)
		}
	}
}

// A platform's picture, and the drawn one of a user without one, may be kept for an hour; the one
// drawn because the platform failed, for a minute.
func TestAvatarsOverHTTP(t *testing.T) {
	const found, none, fails = "100000000000000001", "100000000000000002", "100000000000000003"
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, none):
			w.WriteHeader(http.StatusNotFound)
		case strings.HasSuffix(r.URL.Path, fails):
			w.WriteHeader(http.StatusInternalServerError)
		case strings.HasPrefix(r.URL.Path, "/users/"):
			_, _ = w.Write([]byte(`{"avatar":"a_0f"}`))
		default:
			_, _ = w.Write([]byte("\x89PNG\r\n\x1a\npicture"))
		}
	}))
	t.Cleanup(platform.Close)
	f := serve(t, func(c *Config) { c.Avatars = upstream.AvatarConfig{API: platform.URL, CDN: platform.URL} })
	f.wantAvatar(t, found, "", "\x89PNG\r\n\x1a\npicture", 3600)
	f.wantAvatar(t, none, "", "", 3600)
	f.wantAvatar(t, fails, "", "", 60)
	serve(t).wantAvatar(t, found, "", "", 3600) // no platform
}

// Every kind of error keeps the headers of an answer in which nothing may run.
func TestAvatarErrorsAreSandboxed(t *testing.T) {
	f := serve(t, func(c *Config) { c.RateLimit = 0.001 })
	for range bounds.MaxLimit - 1 { // as many as a page has
		if a := f.get(t, "/api/chat/avatar/1"); a.status != http.StatusOK {
			t.Fatalf("a picture of a page: %d", a.status)
		}
	}
	for i, a := range []*response{
		f.get(t, "/api/chat/avatar/1"),
		f.get(t, "/api/chat/avatar/1"),
		f.ask(t, http.MethodPost, "/api/chat/avatar/1"),
		f.ask(t, http.MethodHead, "/api/chat/avatar/1"),
	} {
		if want := []int{200, 429, 405, 405}[i]; a.status != want {
			t.Errorf("%d: status %d, want %d", i, a.status, want)
		}
		if a.header.Get("Content-Security-Policy") != "default-src 'none'; sandbox" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%d: %v", a.status, a.header)
		}
	}
}
