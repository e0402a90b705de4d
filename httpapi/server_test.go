package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw writes bytes to the server as they are and returns the answer until the server closes.
func (f *fixture) rawRequest(t testing.TB, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn) // a reset after the answer is the server's way to refuse the rest
	return string(answer)
}

const closing = "Host: registry.example\r\nConnection: close\r\n\r\n"

// HEAD is 405 with the headers of that answer and no byte of a body.
func TestHeadOnTheWire(t *testing.T) {
	f := serve(t)
	for _, target := range documented() {
		got := f.rawRequest(t, "HEAD "+target+" HTTP/1.1\r\n"+closing)
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 405 ") || body != "" || !strings.Contains(head, "\r\nAllow: GET") {
			t.Errorf("%s: %q", target, got)
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
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, first.Body)
	second, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(second.Body)
	if first.StatusCode != 400 || first.Header.Get("Content-Security-Policy") == "" || second.StatusCode != 200 || string(body) != `{"results":[]}` ||
		second.Header.Get("Content-Security-Policy") != "" {
		t.Errorf("%d, then %d %s %v", first.StatusCode, second.StatusCode, body, second.Header)
	}
}

// Whoever waits for other people's servers waits longer than a request may take to arrive: the
// server must not take the reader for one who has left.
func TestWaitingOutlastsTheReadTimeout(t *testing.T) {
	c := newChatServer(t)
	slow := func(ctx context.Context) error { time.Sleep(300 * time.Millisecond); return ctx.Err() }
	c.profile = func(h *hostile, w http.ResponseWriter, r *http.Request) {
		_ = slow(r.Context())
		sends(`{"avatar":"x"}`)(h, w, r)
	}
	f := avatarsFrom(t, c, func(cfg *Config) { cfg.Status.Database = slow })
	srv := NewServer(f.public, nil)
	srv.ReadTimeout, srv.ReadHeaderTimeout = 30*time.Millisecond, 30*time.Millisecond
	f.addr = listen(t, srv)
	if a := f.get(t, "/api/status"); a.status != http.StatusOK {
		t.Errorf("status: %d %s", a.status, a.body)
	}
	f.wantAvatar(t, someUser, "", pngText+"picture", "image/png", 3600)
}

func TestServerBounds(t *testing.T) {
	s := NewServer(http.NotFoundHandler(), nil)
	got := fmt.Sprint(s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout, s.MaxHeaderBytes)
	if got != "5s 5s 15s 1m0s 16384" {
		t.Error(got)
	}
}

func TestConnectionsFor(t *testing.T) {
	for descriptors, want := range map[uint64]int{
		0: 1, 1: 1, 100: 50, 255: 127, 256: 128, 1024: 896, 1 << 20: 1 << 14, 1<<64 - 1: 1 << 14,
	} {
		if got := connectionsFor(descriptors); got != want {
			t.Errorf("%d descriptors: %d connections, want %d", descriptors, got, want)
		}
	}
	if n := descriptorLimit(); n < 64 {
		t.Errorf("descriptor limit %d", n)
	}
}

// One connection more than allowed waits until another closes.
func TestLimitConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := LimitConnections(inner, 1)
	accepted := make(chan net.Conn)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Error("a second connection was accepted beside the first")
	default:
	}
	_ = first.Close()
	_ = (<-accepted).Close()
	_ = l.Close()
	<-done
}
