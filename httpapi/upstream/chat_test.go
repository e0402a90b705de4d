package upstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

const (
	someUser  = "100000000000000001"
	someToken = "Canary.Token-example"
)

// chatServer is a platform whose users have the picture that the test says.
type chatServer struct {
	api, cdn *hostile
	picture  func(h *hostile, w http.ResponseWriter, r *http.Request)
	profile  func(h *hostile, w http.ResponseWriter, r *http.Request)

	mu   sync.Mutex
	seen []*http.Request
}

func newChatServer(t testing.TB) *chatServer {
	t.Helper()
	c := &chatServer{picture: sends(pngText + "picture"), profile: sends(`{"id":"1","avatar":"a_0f"}`)}
	note := func(r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen = append(c.seen, r)
	}
	c.api = misbehave(t, func(h *hostile, w http.ResponseWriter, r *http.Request) { note(r); c.profile(h, w, r) })
	c.cdn = misbehave(t, func(h *hostile, w http.ResponseWriter, r *http.Request) { note(r); c.picture(h, w, r) })
	return c
}

// fixture is Services and what they log.
type fixture struct {
	*Services
	log *eventstest.Log
}

func serve(t testing.TB, mutate ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{log: &eventstest.Log{}}
	cfg := Config{Logger: slog.New(slog.NewTextHandler(f.log, nil))}
	for _, m := range mutate {
		m(&cfg)
	}
	var err error
	if f.Services, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// avatarsFrom asks that platform.
func avatarsFrom(t testing.TB, c *chatServer, mutate ...func(*Config)) *fixture {
	t.Helper()
	return serve(t, append([]func(*Config){func(cfg *Config) {
		cfg.Avatars = AvatarConfig{API: c.api.URL + "/api/v10", CDN: c.cdn.URL, Token: someToken}
	}}, mutate...)...)
}

// wantAvatar asks and compares; want "" stands for the drawn picture.
func (f *fixture) wantAvatar(t testing.TB, user string, size int, want, kind string, failed bool) {
	t.Helper()
	got, err := f.Avatar(t.Context(), user, size)
	require.NoError(t, err)
	if want == "" {
		p, _ := drawn(t, user, size)
		want, kind = string(p.bytes), "image/png"
	}
	if string(got.Bytes) != want || got.Type != kind || got.Failed != failed {
		t.Errorf("%s at %d: %d bytes %.20q of %s, failed %v; want %d bytes of %s, failed %v",
			user, size, len(got.Bytes), got.Bytes, got.Type, got.Failed, len(want), kind, failed)
	}
}

// The way of a picture: one question about the user, with the token, and one for the picture,
// without it. After that it is known.
func TestAvatarOfPlatform(t *testing.T) {
	c := newChatServer(t)
	f := avatarsFrom(t, c)
	for range 3 {
		f.wantAvatar(t, someUser, 128, pngText+"picture", "image/png", false)
	}
	f.wantAvatar(t, someUser, 64, pngText+"picture", "image/png", false)
	var got []string
	for _, r := range c.seen {
		got = append(got, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Accept-Encoding"))
		if r.Header.Get("Cookie") != "" || r.Header.Get("Referer") != "" || r.Header.Get("X-Forwarded-For") != "" {
			t.Errorf("headers %v", r.Header)
		}
	}
	want := []string{
		"GET /api/v10/users/" + someUser + " Bot " + someToken + " ",
		"GET /avatars/" + someUser + "/a_0f.png?size=128  ",
		"GET /avatars/" + someUser + "/a_0f.png?size=64  ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if log := f.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// Ids that no platform has issued are not asked for.
func TestAvatarsThatNobodyIsAskedFor(t *testing.T) {
	c := newChatServer(t)
	f := avatarsFrom(t, c)
	for _, user := range []string{
		"1", "12345678901234", "123456789012345678901", "a", "-", "_", "10000000000000000a", "-00000000000000001",
		strings.Repeat("x", 64), strings.Repeat("1", 64),
	} {
		f.wantAvatar(t, user, 128, "", "", false)
	}
	for _, size := range avatarSizes() {
		f.wantAvatar(t, "nobody", size, "", "", false)
	}
	if n := c.api.requests.Load() + c.cdn.requests.Load(); n > 0 {
		t.Errorf("%d requests", n)
	}
	serve(t).wantAvatar(t, someUser, 128, "", "", false) // no platform
}

// The four kinds are recognized by their bytes, whatever they are called.
func TestPicturesPassedOn(t *testing.T) {
	img := image.NewPaletted(image.Rect(0, 0, 2, 2), palette.WebSafe)
	encoded := func(encode func(*bytes.Buffer) error) string {
		var out bytes.Buffer
		require.NoError(t, encode(&out))
		return out.String()
	}
	webp := "RIFF" + string(binary.LittleEndian.AppendUint32(nil, 26)) + "WEBPVP8L" + strings.Repeat("\x00", 18)
	for kind, picture := range map[string]string{
		"image/png":  encoded(func(b *bytes.Buffer) error { return png.Encode(b, img) }),
		"image/jpeg": encoded(func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) }),
		"image/gif":  encoded(func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) }),
		"image/webp": webp,
	} {
		for _, called := range []string{"image/png", "text/html", "image/svg+xml", ""} {
			c := newChatServer(t)
			c.picture = sends(picture, "Content-Type", called)
			avatarsFrom(t, c).wantAvatar(t, someUser, 128, picture, kind, false)
		}
	}
	c := newChatServer(t)
	largest := pngText + strings.Repeat("x", maxPicture-len(pngText))
	c.picture = sends(largest)
	avatarsFrom(t, c).wantAvatar(t, someUser, 128, largest, "image/png", false)
}

// Whatever other people's servers do, a reader gets a picture in time, and never theirs unless
// it is one.
func TestHostilePictures(t *testing.T) {
	elsewhere := misbehave(t, sends(pngText+"internal"))
	three := strings.Repeat("x", 3<<20)
	tooLarge := func(_ *hostile, w http.ResponseWriter, _ *http.Request) { // without a length
		_, _ = w.Write([]byte(pngText))
		w.(http.Flusher).Flush()
		_, _ = w.Write([]byte(three))
	}
	for name, answer := range map[string]func(*hostile, http.ResponseWriter, *http.Request){
		"hangs":                hangs,
		"hangs in the body":    hangsInBody,
		"hangs in the header":  hangsInHeader,
		"for ever":             endless,
		"3 MiB":                sends(pngText+three, "Content-Length", strconv.Itoa(len(pngText)+len(three))),
		"3 MiB in chunks":      tooLarge,
		"one byte too many":    sends(pngText + strings.Repeat("x", maxPicture-len(pngText)+1)),
		"gzip bomb":            gzipBomb,
		"unknown coding":       sends(pngText, "Content-Encoding", "br"),
		"HTML called PNG":      sends("<!DOCTYPE html><script>alert(1)</script>", "Content-Type", "image/png"),
		"HTML after spaces":    sends("\n\n <html><b>", "Content-Type", "image/png"),
		"SVG":                  sends(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, "Content-Type", "image/svg+xml"),
		"SVG as XML":           sends(`<?xml version="1.0"?><svg onload="alert(1)"/>`, "Content-Type", "image/png"),
		"PDF":                  sends("%PDF-1.7", "Content-Type", "image/png"),
		"script":               sends("alert(1)", "Content-Type", "image/png"),
		"BMP":                  sends("BM"+strings.Repeat("\x00", 60), "Content-Type", "image/bmp"),
		"icon":                 sends("\x00\x00\x01\x00", "Content-Type", "image/x-icon"),
		"AVIF":                 sends("\x00\x00\x00\x20ftypavif\x00\x00\x00\x00avifmif1", "Content-Type", "image/avif"),
		"TIFF":                 sends("II*\x00", "Content-Type", "image/tiff"),
		"sound in a RIFF":      sends("RIFF\x00\x00\x00\x00WAVEfmt ", "Content-Type", "image/webp"),
		"PNG later":            sends("x"+pngText, "Content-Type", "image/png"),
		"half a signature":     sends("\x89PN", "Content-Type", "image/png"),
		"nothing":              sends("", "Content-Type", "image/png"),
		"204":                  status(204),
		"206":                  status(206),
		"redirect to loopback": status(302, "Location", elsewhere.URL),
		"redirect to metadata": status(307, "Location", "http://169.254.169.254/latest/meta-data/"),
		"redirect for ever":    status(301, "Location", "/"),
		"403":                  status(403),
		"500":                  status(500),
		"503":                  status(503, "Retry-After", "1"),
		"429":                  status(429, "Retry-After", "1"),
		"429 saying nothing":   status(429),
		"huge header":          hugeHeader,
		"cut off":              cutOff,
		"not HTTP":             notHTTP,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChatServer(t)
			c.picture = answer
			f := avatarsFrom(t, c, func(cfg *Config) { cfg.Avatars.timeout = impatient(strings.HasPrefix(name, "hangs")) })
			f.wantAvatar(t, someUser, 128, "", "", true)
			f.wantAvatar(t, someUser, 128, "", "", true)
			if n := c.cdn.requests.Load(); n != 1 {
				t.Errorf("asked %d times within a minute", n)
			}
			log := f.log.String()
			for _, secret := range []string{someToken, someUser, "canary", "a_0f", "127.0.0.1"} {
				if strings.Contains(log, secret) {
					t.Errorf("the log shows %q: %s", secret, log)
				}
			}
			if !strings.Contains(log, "chat platform gives no picture") {
				t.Errorf("log %q", log)
			}
		})
	}
	t.Cleanup(func() {
		if n := elsewhere.requests.Load(); n > 0 {
			t.Errorf("a redirect was followed %d times", n)
		}
	})
}

// The same of the answers about a user; "" and null, and no such user, mean no picture.
func TestProfiles(t *testing.T) {
	elsewhere := misbehave(t, sends(`{"avatar":"x"}`))
	for name, c := range map[string]struct {
		answer func(*hostile, http.ResponseWriter, *http.Request)
		failed bool
	}{
		"null":              {sends(`{"avatar":null}`), false},
		"empty":             {sends(`{"avatar":""}`), false},
		"absent":            {sends(`{}`), false},
		"no such user":      {status(404), false},
		"hangs":             {hangs, true},
		"hangs in the body": {func(h *hostile, w http.ResponseWriter, _ *http.Request) { h.trickle(w, `{"avatar":"a"} `) }, true},
		"endless":           {endless, true},
		"not JSON":          {sends("<html>"), true},
		"an array":          {sends(`[]`), true},
		"a number":          {sends(`{"avatar":1}`), true},
		"a path":            {sends(`{"avatar":"../../secret"}`), true},
		"a host":            {sends(`{"avatar":"@evil.example/"}`), true},
		"a query":           {sends(`{"avatar":"x?y"}`), true},
		"too long":          {sends(`{"avatar":"` + strings.Repeat("x", 65) + `"}`), true},
		"nested":            {sends(`{"avatar":` + strings.Repeat("[", 60000)), true},
		"64 KiB and a byte": {sends(strings.Repeat(" ", maxProfile-1) + `{}`), true},
		"gzip":              {sends(`{"avatar":"x"}`, "Content-Encoding", "gzip"), true},
		"redirect":          {status(302, "Location", elsewhere.URL), true},
		"401":               {status(401), true},
		"403":               {status(403), true},
		"429":               {status(429, "Retry-After", "2"), true},
		"502":               {status(502), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newChatServer(t)
			server.profile = c.answer
			f := avatarsFrom(t, server, func(cfg *Config) { cfg.Avatars.timeout = impatient(strings.HasPrefix(name, "hangs")) })
			f.wantAvatar(t, someUser, 128, "", "", c.failed)
			f.wantAvatar(t, someUser, 16, "", "", c.failed)
			if api, cdn := server.api.requests.Load(), server.cdn.requests.Load(); api != 1 || cdn != 0 {
				t.Errorf("%d questions about users, %d for pictures", api, cdn)
			}
		})
	}
	t.Cleanup(func() {
		if n := elsewhere.requests.Load(); n > 0 {
			t.Errorf("a redirect was followed %d times: with the token", n)
		}
	})
}

// A thousand readers who come at once cause one question.
func TestAvatarIsAskedForOnce(t *testing.T) {
	c := newChatServer(t)
	c.picture = func(h *hostile, w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		sends(pngText)(h, w, r)
	}
	f := avatarsFrom(t, c)
	var group sync.WaitGroup
	var good atomic.Int64
	for range 1000 {
		group.Go(func() {
			if got, err := f.Avatar(t.Context(), someUser, 128); err == nil && string(got.Bytes) == pngText {
				good.Add(1)
			}
		})
	}
	group.Wait()
	if api, cdn := c.api.requests.Load(), c.cdn.requests.Load(); api != 1 || cdn != 1 || good.Load() != 1000 {
		t.Errorf("%d questions about users, %d for pictures, %d good answers", api, cdn, good.Load())
	}
}

// A platform that is not there, or has the wrong certificate, is one that failed.
func TestAvatarsOfNobody(t *testing.T) {
	for _, address := range []string{nobody(), selfSigned(t)} {
		f := serve(t, func(c *Config) { c.Avatars = AvatarConfig{API: address, CDN: address} })
		f.wantAvatar(t, someUser, 128, "", "", true)
	}
}

// A secret shows in no way of printing it.
func TestSecret(t *testing.T) {
	cfg := AvatarConfig{Token: someToken}
	for _, text := range []string{fmt.Sprint(cfg), fmt.Sprintf("%v %+v %#v %s %q", cfg, cfg, cfg, cfg.Token, cfg.Token)} {
		if strings.Contains(text, "Canary") {
			t.Error(text)
		}
	}
	text, err := cfg.Token.MarshalText()
	if err != nil || string(text) != redacted || cfg.Token.LogValue().String() != redacted {
		t.Errorf("%s %v", text, err)
	}
}

// Whatever a platform says of a user, what is taken for a picture's name can stand in an address
// as it is.
func FuzzAvatarName(f *testing.F) {
	for _, seed := range []string{
		`{"avatar":"a_0f"}`, `{"avatar":null}`, `{"avatar":"../x"}`, `{"avatar":1}`, `{"AVATAR":"x"}`, `[`, `{"avatar":"\u0000"}`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		name, err := avatarName(body)
		switch {
		case err == nil && !events.IsID(name):
			t.Errorf("%q is a name", name)
		case err != nil && (name != "" || !errors.Is(err, errNoPicture) && !errors.Is(err, errUnusable)):
			t.Errorf("%q: %v", name, err)
		}
	})
}

// What is passed on is one of the four kinds, and no browser that reads the bytes itself takes
// it for a document.
func FuzzPicture(f *testing.F) {
	for _, seed := range []string{pngText, "GIF89a", "\xff\xd8\xff", "RIFF\x00\x00\x00\x00WEBPVP8 ", "<svg", "<html", "GIF89a<script>", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := recognize(data)
		if err != nil {
			return
		}
		if kind := http.DetectContentType(p.bytes); kind != p.kind || !strings.HasPrefix(kind, "image/") || strings.Contains(kind, "svg") {
			t.Errorf("%q passed on as %s, is %s", data, p.kind, kind)
		}
		if data[0] == '<' || data[0] == ' ' || data[0] == '%' {
			t.Errorf("%q passed on as %s", data, p.kind)
		}
	})
}
