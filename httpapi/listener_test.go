package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dial opens a connection to the server.
func (f *fixture) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", f.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
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

// HEAD is 405 below /api/. Elsewhere it has the head of the answer to GET, byte for byte. It never has a byte of a body.
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

// Requests at the edge of HTTP get the table's answers where they reach the handler. Heads of requests are bounded.
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
		get + "X-Long: " + strings.Repeat("x", 16<<10) + "\r\n" + closing:            "200", // 4 KiB of slop
		get + "X-Long: " + strings.Repeat("x", 21<<10) + "\r\n" + closing:            "431",
	} {
		got := f.rawRequest(t, request)
		if !strings.HasPrefix(got, "HTTP/1.1 "+status+" ") && !strings.HasPrefix(got, "HTTP/1.0 "+status+" ") {
			t.Errorf("%.60q: %.120q, want %s", request, got, status)
		}
	}
	f.get(t, "/api/scammers")
}

// A request with two framings is answered, and nothing after it, whatever the answer is.
func TestTwoFramings(t *testing.T) {
	works, panics := serve(t), serve(t)
	panics.public.health.Reader = failing{"of a panic"}
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

// A preflight on a documented path gets gin-contrib/cors' answer, and the headers of every other one.
func TestPreflight(t *testing.T) {
	f := serve(t)
	for _, target := range documented() {
		for _, origin := range []string{"https://reader.example", "null", "x"} {
			a := f.ask(t, http.MethodOptions, target, "Origin", origin)
			require.Equal(t, http.StatusNoContent, a.status, target)
			require.Equal(t, []string{"*"}, a.header.Values("Access-Control-Allow-Origin"))
			require.Equal(t, "* 86400", a.header.Get("Access-Control-Allow-Headers")+" "+a.header.Get("Access-Control-Max-Age"))
		}
		require.Equal(t, http.StatusNoContent, f.fetch(t, http.MethodOptions, target, "Origin", "http://"+f.addr).status, "its own origin")
	}
}

// elsewhere is a listener whose peers seem to be elsewhere.
type elsewhere struct {
	net.Listener
	next *atomic.Int64
}

func (l elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return peer{c, fmt.Sprintf("203.0.113.%d:1", l.next.Load())}, err
}

type peer struct {
	net.Conn
	address string
}

func (p peer) RemoteAddr() net.Addr { return address(p.address) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// One client address holds at most a quarter of the connections, unless it may be a proxy's; one connection more than there
// may be waits until another closes; one that asks nothing is closed after its time.
func TestLimitConnections(t *testing.T) {
	var client, refused atomic.Int64
	client.Store(1)
	start := func(most int, trusted []netip.Prefix, idle time.Duration) (dial func() (net.Conn, error)) {
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		srv := NewServer(http.NotFoundHandler(), idle, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = srv.Serve(LimitConnections(elsewhere{inner, &client}, most, trusted, func() { refused.Add(1) }))
		}()
		t.Cleanup(func() { _ = srv.Close(); <-done })
		return func() (net.Conn, error) {
			c, err := net.Dial("tcp", inner.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
			}
			return c, err
		}
	}

	dial := start(8, nil, time.Minute)
	for i := range 4 {
		_, err := dial()
		require.Equal(t, i < 2, err == nil, "connection %d of one client", i)
	}
	require.EqualValues(t, 2, refused.Load())
	client.Store(2)
	c, err := dial()
	require.NoError(t, err, "another client")
	_, err = dial()
	require.NoError(t, err)
	_ = c.Close()
	client.Store(3)
	_, err = dial()
	require.NoError(t, err)

	dial = start(2, prefixes(t, "203.0.113.0/24"), 200*time.Millisecond)
	c, err = dial()
	require.NoError(t, err)
	_, err = dial()
	require.NoError(t, err, "a proxy has no share")
	_, err = dial()
	require.NoError(t, err, "one more waits until another closes")
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "a connection without a request")
}

// The listeners have their parts of the descriptors.
func TestDescriptors(t *testing.T) {
	for descriptors, want := range map[uint64]Parts{
		64: {Public: 36, Operators: 4, Broker: 8}, 1024: {Public: 704, Operators: 64, Broker: 128}, 1 << 40: {Public: maxPublic, Operators: 64, Broker: 1024},
	} {
		require.Equal(t, want, partsOf(descriptors), descriptors)
	}
}
