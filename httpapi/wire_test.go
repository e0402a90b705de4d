package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/httpapi/upstream"
	"example.org/registry/httpapi/wire"
)

// dial opens a connection to the server.
func (f *fixture) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", f.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn.(*net.TCPConn)
}

// rawRequest writes bytes to the server as they are and returns the answer until the server closes.
func (f *fixture) rawRequest(t testing.TB, request string) string {
	t.Helper()
	conn := f.dial(t)
	_, err := io.WriteString(conn, request)
	require.NoError(t, err)
	answer, _ := io.ReadAll(conn) // a reset after the answer is the server's way to refuse the rest
	return string(answer)
}

const closing = "Host: registry.example\r\nConnection: close\r\n\r\n"

// HEAD is 405 below /api/. Elsewhere it has the head of the answer to GET, byte for byte. It never
// has a byte of a body.
func TestHeadOnTheWire(t *testing.T) {
	f := serve(t, withSite)
	date := regexp.MustCompile("(?m)^(Date|Last-Modified|Registry-As-Of|Server-Timing): .*\r\n")
	headOf := func(method, target, encoding string) (head, body string) {
		t.Helper()
		got := f.rawRequest(t, method+" "+target+" HTTP/1.1\r\nAccept-Encoding: "+encoding+"\r\n"+closing)
		head, body, _ = strings.Cut(got, "\r\n\r\n")
		return date.ReplaceAllString(head, ""), body
	}
	targets := append(documented(), sitePages()...)
	targets = append(targets, somebodysPage, "/wpis/scammers/nobody", "/?search=zenon", "/scammers?limit=0", "/nowhere", "/status", "/api", "/boty", "/boty/discordbot.py", "/opensearch.xml", "/o-rejestrze", "/szukaj",
		"/szukaj?q=nitro", "/robots.txt", "/favicon.ico", "/.well-known/security.txt", "/scammers/")
	for _, a := range f.public.site.Assets() {
		targets = append(targets, a.Path)
	}
	for _, target := range targets {
		for _, encoding := range []string{"identity", "gzip"} {
			head, body := headOf("HEAD", target, encoding)
			if body != "" {
				t.Errorf("HEAD %s: a body of %d bytes", target, len(body))
			}
			if allowed(target) == "GET" {
				if !strings.HasPrefix(head, "HTTP/1.1 405 ") || !strings.Contains(head, "\r\nAllow: GET\r\n") {
					t.Errorf("HEAD %s: %q", target, head)
				}
				continue
			}
			if get, body := headOf("GET", target, encoding); head != get || !strings.Contains(head, fmt.Sprintf("\r\nContent-Length: %d", len(body))) {
				t.Errorf("HEAD %s:\n%s\nwant, with %d bytes:\n%s", target, head, len(body), get)
			}
		}
	}
}

// Requests at the edge of HTTP: what reaches the handler gets the table's answers, what does not
// is refused by net/http, and the server goes on.
func TestOddRequestsOnTheWire(t *testing.T) {
	f := serve(t)
	get := "GET /api/scammers HTTP/1.1\r\n"
	for request, status := range map[string]string{
		get + closing:                        "200",
		"GET /api/scammers HTTP/1.0\r\n\r\n": "200",
		"GET http://other.example/api/scammers HTTP/1.1\r\n" + closing:               "200",
		"GET /api/scammers?" + strings.Repeat("x", 4096) + " HTTP/1.1\r\n" + closing: "200",
		"GET /api/scammers?" + strings.Repeat("x", 4097) + " HTTP/1.1\r\n" + closing: "400",
		"GET /api/scammers?search=\xff HTTP/1.1\r\n" + closing:                       "400",
		"GET /api/scammers#top HTTP/1.1\r\n" + closing:                               "404", // a fragment is never sent: it is part of the path
		"OPTIONS * HTTP/1.1\r\n" + closing:                                           "404",
		"OPTIONS /api/scammers HTTP/1.1\r\n" + closing:                               "405",
		"CONNECT registry.example:443 HTTP/1.1\r\n" + closing:                        "404",
		"TRACE /api/scammers HTTP/1.1\r\n" + closing:                                 "405",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                           "404",
		"POST /api/scammers HTTP/1.1\r\nContent-Length: 3\r\n" + closing + "abc":     "405",
		"GET /%zz HTTP/1.1\r\n" + closing:                                            "400",
		"GET /api/scammers HTTP/1.1\r\nConnection: close\r\n\r\n":                    "400", // no Host
		get + "Host: a\r\n" + closing:                                                "400",
		get + "Content-Length: 1\r\nContent-Length: 2\r\n" + closing:                 "400",
		get + "Transfer-Encoding: chunked, chunked\r\n" + closing:                    "501",
		get + "Bad Header: x\r\n" + closing:                                          "400",
		get + " folded: x\r\n" + closing:                                             "400",
		"GET /api/scammers HTTP/3.0\r\n" + closing:                                   "505",
		"nonsense\r\n\r\n": "400",
		get + "X-Long: " + strings.Repeat("x", 16<<10) + "\r\n" + closing: "200", // 4 KiB of slop
		get + "X-Long: " + strings.Repeat("x", 21<<10) + "\r\n" + closing: "431",
	} {
		got := f.rawRequest(t, request)
		if !strings.HasPrefix(got, "HTTP/1.1 "+status+" ") && !strings.HasPrefix(got, "HTTP/1.0 "+status+" ") {
			t.Errorf("%.60q: %.120q, want %s", request, got, status)
		}
	}
	f.get(t, "/api/scammers")
}

// Two requests on one connection: no header or body of the first is in the second.
func TestPipelinedRequests(t *testing.T) {
	f := serve(t)
	got := f.rawRequest(t, "GET /api/chat/avatar/1?size=17 HTTP/1.1\r\nHost: x\r\n\r\n"+"GET /api/check?id=1 HTTP/1.1\r\n"+closing)
	r := bufio.NewReader(strings.NewReader(got))
	first, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, first.Body)
	second, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	body, _ := io.ReadAll(second.Body)
	if first.StatusCode != 400 || first.Header.Get("Content-Security-Policy") == "" || second.StatusCode != 200 || string(body) != `{"results":[]}` ||
		second.Header.Get("Content-Security-Policy") != "" {
		t.Errorf("%d, then %d %s %v", first.StatusCode, second.StatusCode, body, second.Header)
	}
}

// A request for another server's data waits longer than a request may take to arrive: the
// server must not take the reader for one who has left.
func TestWaitingOutlastsTheReadTimeout(t *testing.T) {
	const picture = "\x89PNG\r\n\x1a\npicture"
	slow := func(ctx context.Context) error { time.Sleep(300 * time.Millisecond); return ctx.Err() }
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/users/") {
			_ = slow(r.Context())
			_, _ = io.WriteString(w, `{"avatar":"x"}`)
			return
		}
		_, _ = io.WriteString(w, picture)
	}))
	t.Cleanup(platform.Close)
	f := serve(t, func(cfg *Config) {
		cfg.Status.Database = slow
		cfg.Avatars = upstream.AvatarConfig{API: platform.URL, CDN: platform.URL}
	})
	srv := wire.NewServer(f.public, nil)
	srv.ReadTimeout, srv.ReadHeaderTimeout = 30*time.Millisecond, 30*time.Millisecond
	f.addr = listen(t, srv)
	if a := f.get(t, "/api/status"); a.status != http.StatusOK {
		t.Errorf("status: %d %s", a.status, a.body)
	}
	f.wantAvatar(t, "100000000000000001", "", picture, 3600)
}

// A reader that has closed its sending side waits like any other for what takes time: other
// people's servers, its turn to search, a sequence.
func TestHalfClosedReaders(t *testing.T) {
	release := make(chan struct{})
	var upstreams atomic.Int64 // requests that wait
	wait := func(ctx context.Context) error {
		upstreams.Add(1)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = wait(r.Context())
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(platform.Close)
	f := serveSite(t, func(cfg *Config) {
		cfg.Status.Database = wait
		cfg.Avatars = upstream.AvatarConfig{API: platform.URL, CDN: platform.URL}
	})
	f.boundSearches(64, time.Hour)
	f.public.gate.wait = time.Hour
	leave, err := f.public.searches.enter(t.Context(), true)
	require.NoError(t, err)
	answers := map[string]net.Conn{}
	for _, request := range []string{
		"/api/chat/avatar/100000000000000001 HTTP/1.1\r\n", "/api/status HTTP/1.1\r\n",
		"/api/scammers?search=adam HTTP/1.1\r\n", "/api/check?search=adam HTTP/1.1\r\n",
		"/?search=adam HTTP/1.1\r\n", "/scammers?search=adam HTTP/1.1\r\n",
		"/api/legit HTTP/1.1\r\n" + minSeqHeader + ": " + apitest.Sequence(1) + "\r\n",
	} {
		conn := f.dial(t)
		_, err := io.WriteString(conn, "GET "+request+"Host: x\r\n\r\n")
		require.NoError(t, err)
		require.NoError(t, conn.CloseWrite())
		answers[request] = conn
	}
	waiting := func() bool {
		return upstreams.Load() == 2 && f.public.searches.count() == 4 && f.public.gate.waiting.count() == 1
	}
	eventstest.Until(t, waiting)
	time.Sleep(100 * time.Millisecond) // for the ends of input to arrive
	if !waiting() {
		t.Error("some wait no longer")
	}
	close(release)
	leave()
	f.apply(apitest.People()[0])
	for request, conn := range answers {
		if got, _ := io.ReadAll(conn); !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
			t.Errorf("%q: %.200q", request, got)
		}
	}
}

// A request with two framings is answered, and nothing after it, whatever the answer is.
func TestTwoFramings(t *testing.T) {
	works, panics := serve(t), serve(t, func(c *Config) { c.Health.Reader = failing{"of a panic"} })
	for _, c := range []struct {
		f      *fixture
		target string
		status string
	}{{works, "/api/scammers?limit=5", "200"}, {works, "/api/check?id=", "400"}, {works, "/nope", "404"}, {panics, "/api/legit", "500"}} {
		for _, head := range []string{
			" HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
			" HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
		} {
			got := c.f.rawRequest(t, "GET "+c.target+head+"0\r\n\r\nGET /api/legit HTTP/1.1\r\nHost: x\r\n\r\n")
			if strings.Count(got, "HTTP/1.") != 1 || got[9:12] != c.status || !strings.Contains(got, "\r\nConnection: close\r\n") {
				t.Errorf("%s%q: %.400q", c.target, head, got)
			}
		}
	}
}
