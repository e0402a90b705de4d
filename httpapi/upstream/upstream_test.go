package upstream

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile is a server of the kind nobody wants to ask. What hangs hangs until the test ends.
type hostile struct {
	*httptest.Server
	requests atomic.Int64
	free     chan struct{}
}

// misbehave starts a server that answers in one of the ways below.
func misbehave(t testing.TB, answer func(h *hostile, w http.ResponseWriter, r *http.Request)) *hostile {
	t.Helper()
	h := &hostile{free: make(chan struct{})}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.requests.Add(1)
		answer(h, w, r)
	}))
	t.Cleanup(func() { close(h.free); h.Server.CloseClientConnections(); h.Close() })
	return h
}

// trickle sends a byte of text now and then until the connection or the test ends.
func (h *hostile) trickle(w io.Writer, text string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		for i := range len(text) {
			select {
			case <-h.free:
				return
			case <-tick.C:
			}
			if _, err := io.WriteString(w, text[i:i+1]); err != nil {
				return
			}
			if f, ok := w.(http.Flusher); ok {
				f.Flush()
			}
		}
	}
}

// raw takes the connection over.
func raw(w http.ResponseWriter) net.Conn {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	return conn
}

// The ways to answer. Those with "hang" in the name never finish.
func hangs(h *hostile, _ http.ResponseWriter, _ *http.Request) { <-h.free }

func hangsInHeader(h *hostile, w http.ResponseWriter, _ *http.Request) {
	conn := raw(w)
	defer conn.Close()
	h.trickle(conn, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 4096))
}

func hangsInBody(h *hostile, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "image/png")
	h.trickle(w, pngText+strings.Repeat("x", 4096))
}

func endless(h *hostile, w http.ResponseWriter, _ *http.Request) {
	_, err := io.WriteString(w, pngText)
	for err == nil {
		_, err = w.Write(make([]byte, 64<<10))
	}
}

func status(code int, headers ...string) func(*hostile, http.ResponseWriter, *http.Request) {
	return func(_ *hostile, w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

func sends(text string, headers ...string) func(*hostile, http.ResponseWriter, *http.Request) {
	return func(_ *hostile, w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		_, _ = io.WriteString(w, text)
	}
}

func hugeHeader(_ *hostile, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X", strings.Repeat("x", maxHeader+1))
}

func notHTTP(_ *hostile, w http.ResponseWriter, _ *http.Request) {
	conn := raw(w)
	defer conn.Close()
	_, _ = io.WriteString(conn, "220 canary-in-the-greeting ESMTP\r\n")
}

func cutOff(_ *hostile, w http.ResponseWriter, _ *http.Request) {
	conn := raw(w)
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: image/png\r\n\r\n"+pngText)
}

func gzipBomb(_ *hostile, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Type", "image/png")
	z := gzip.NewWriter(w)
	_, err := io.WriteString(z, pngText)
	for err == nil { // a thousand times larger when it is unpacked, and without an end
		if _, err = z.Write(make([]byte, 1<<20)); err == nil {
			err = z.Flush()
		}
	}
}

// pngText begins like a PNG, which is what a picture is recognized by.
const pngText = "\x89PNG\r\n\x1a\n"

// impatient is a timeout: short for what hangs, so that the test is, else the real one.
func impatient(hangs bool) time.Duration {
	if hangs {
		return 200 * time.Millisecond
	}
	return 0
}

// selfSigned is the address of a server whose certificate nobody has signed.
func selfSigned(t testing.TB) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// nobody is an address at which nothing listens.
func nobody() string {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	return s.URL
}

// A probe is good on any answer below 500, and on nothing else; it waits no longer than told,
// follows nothing, and reads no body.
func TestProbes(t *testing.T) {
	elsewhere := misbehave(t, status(200))
	secure, gone := selfSigned(t), nobody()
	for name, c := range map[string]struct {
		answer  func(*hostile, http.ResponseWriter, *http.Request)
		address string
		ok      bool
		outcome outcome
	}{
		"200":             {answer: status(200), ok: true, outcome: outcomeOK},
		"204":             {answer: status(204), ok: true, outcome: outcomeOK},
		"redirect":        {answer: status(302, "Location", elsewhere.URL), ok: true, outcome: outcomeOK},
		"404":             {answer: status(404), ok: true, outcome: outcomeOK},
		"429":             {answer: status(429), ok: true, outcome: outcomeOK},
		"499":             {answer: status(499), ok: true, outcome: outcomeOK},
		"500":             {answer: status(500), outcome: outcomeServer},
		"503":             {answer: status(503), outcome: outcomeServer},
		"599":             {answer: status(599), outcome: outcomeServer},
		"endless body":    {answer: endless, ok: true, outcome: outcomeOK},
		"slow body":       {answer: hangsInBody, ok: true, outcome: outcomeOK},
		"gzip bomb":       {answer: gzipBomb, ok: true, outcome: outcomeOK},
		"hang":            {answer: hangs, outcome: outcomeTimeout},
		"slow header":     {answer: hangsInHeader, outcome: outcomeTimeout},
		"huge header":     {answer: hugeHeader, outcome: outcomeFailed},
		"not HTTP":        {answer: notHTTP, outcome: outcomeFailed},
		"nobody there":    {address: gone, outcome: outcomeFailed},
		"bad certificate": {address: secure, outcome: outcomeFailed},
		"HTTP to TLS":     {address: strings.Replace(secure, "https", "http", 1), ok: true, outcome: outcomeOK}, // Go answers 400
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.address == "" {
				c.address = misbehave(t, c.answer).URL
			}
			f := serve(t, func(cfg *Config) {
				cfg.Status.Coin, cfg.Status.timeout = c.address, impatient(c.outcome == outcomeTimeout)
			})
			status, err := f.Status(t.Context())
			got := must(t, status, err)[3]
			if got.OK != c.ok {
				t.Errorf("%+v", got)
			}
			if c.outcome == outcomeTimeout && (got.Latency < 200*time.Millisecond || got.Latency >= callTimeout) {
				t.Errorf("%+v", got)
			}
			calls := f.status.probes[3].metrics.calls
			if n := testutil.ToFloat64(calls.WithLabelValues("coin", string(c.outcome))); n != 1 {
				t.Errorf("%v calls with outcome %s", n, c.outcome)
			}
			if log := f.log.String(); c.ok == strings.Contains(log, "component=coin") || strings.Contains(log, "canary") || strings.Contains(log, c.address) {
				t.Errorf("logged: %s", log)
			}
		})
	}
	t.Cleanup(func() {
		if n := elsewhere.requests.Load(); n > 0 {
			t.Errorf("a redirect was followed %d times", n)
		}
	})
}

// Hanging components are asked side by side: four of them take as long as one.
func TestProbesRunSideBySide(t *testing.T) {
	slow := misbehave(t, hangs).URL
	database := &asked{then: deaf}
	f := serve(t, func(c *Config) {
		c.Status = StatusConfig{Database: database.ask, Guard: slow, Chat: slow, Coin: slow, timeout: 300 * time.Millisecond}
	})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			status, err := f.Status(t.Context())
			for _, got := range must(t, status, err) {
				if got.OK || got.Latency < 300*time.Millisecond {
					t.Errorf("%+v", got)
				}
			}
		})
	}
	group.Wait()
	if database.calls.Load() != 1 {
		t.Errorf("%d rounds", database.calls.Load())
	}
}

// Addresses that cannot be meant are refused at start.
func TestBadUpstreamAddresses(t *testing.T) {
	for _, address := range []string{"ftp://x", "x", "http://", "http://:80", "http://u:p@x", "http://x/?q", "http://x/#f", "%"} {
		if _, err := New(Config{Status: StatusConfig{Guard: address}}); err == nil {
			t.Errorf("status: %s is accepted", address)
		}
		if _, err := New(Config{Avatars: AvatarConfig{API: address, CDN: "https://cdn.example.org"}}); err == nil {
			t.Errorf("avatars: %s is accepted", address)
		}
	}
	for _, cfg := range []AvatarConfig{
		{API: "https://api.example.org"}, {CDN: "https://cdn.example.org"}, {Token: "x"},
		{API: "http://api.example.org", CDN: "https://cdn.example.org", Token: "x"},
	} {
		if err := cfg.Check(); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
	for _, cfg := range []AvatarConfig{
		{}, {API: "https://api.example.org/api/v10/", CDN: "http://cdn.example.org", Token: "x"},
		{API: "http://127.0.0.1:1", CDN: "http://[::1]:2", Token: "x"}, {API: "http://platform", CDN: "http://platform", Token: "x"},
	} {
		if err := cfg.Check(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// Whatever the environment says of proxies: the address in it is not asked.
func TestNoProxy(t *testing.T) {
	if newTransport(nil).Proxy != nil {
		t.Error("a proxy of the environment would be used")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "x": 0, "NaN": 0, "1": time.Second, "1.5": 1500 * time.Millisecond, " 7 ": 7 * time.Second,
		"3600": time.Hour, "999999": time.Hour, "1e300": time.Hour, "+Inf": time.Hour,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
		now.Add(48 * time.Hour).Format(http.TimeFormat): time.Hour, now.Format(time.RFC3339): 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// Whatever is sent as Retry-After, nobody waits less than nothing or longer than an hour.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "1", "1.5", "-1", "1e9", "Sat, 21 Nov 2026 10:00:00 GMT", "0x10", "Infinity"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d := pauseFor(retryAfter(http.Header{"Retry-After": {text}}, time.Unix(0, 0))); d < minPause || d > maxPause {
			t.Errorf("%q: %v", text, d)
		}
	})
}
