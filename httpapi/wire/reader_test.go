package wire

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// request is how a handler of hand sees a request.
type request struct {
	path string
	ctx  context.Context
	end  chan struct{} // closed by the test
}

// hand serves requests that the test answers by hand, with their paths, over connections of
// LimitConnections.
func hand(t *testing.T) (address string, requests <-chan request) {
	t.Helper()
	ch := make(chan request, 8)
	srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := request{r.URL.Path, r.Context(), make(chan struct{})}
		ch <- req
		select {
		case <-req.end:
			_, _ = io.WriteString(w, r.URL.Path)
		case <-r.Context().Done():
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}), nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(LimitConnections(l, Limits{Connections: 8})) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return l.Addr().String(), ch
}

// ask opens a connection and writes text.
func ask(t *testing.T, address, text string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	return c.(*net.TCPConn)
}

// next is the next request that reaches a handler.
func next(t *testing.T, requests <-chan request) request {
	t.Helper()
	select {
	case r := <-requests:
		return r
	case <-time.After(20 * time.Second):
		t.Fatal("no request")
		return request{}
	}
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

// bodies reads all answers.
func bodies(t *testing.T, c net.Conn) (all []string) {
	t.Helper()
	for in := bufio.NewReader(c); ; {
		if _, err := in.Peek(1); err != nil {
			return all
		}
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		_ = resp.Body.Close()
		all = append(all, resp.Status[:3]+" "+string(body))
	}
}

const settled = 100 * time.Millisecond // long enough for the end of input to be seen

// A reader that has closed its sending side is answered, also for what it sent ahead.
func TestHalfClosedReaderIsAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"one":       {get("/a"), []string{"200 /a"}},
		"pipelined": {get("/a") + get("/b") + get("/c"), []string{"200 /a", "200 /b", "200 /c"}},
		"body":      {"GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + get("/b"), []string{"200 /a", "200 /b"}},
		"old":       {"GET /a HTTP/1.0\r\n\r\n", []string{"200 /a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, requests := hand(t)
			conn := ask(t, address, c.text)
			require.NoError(t, conn.CloseWrite())
			for range c.want {
				r := next(t, requests)
				select {
				case <-r.ctx.Done():
					t.Error(r.path, "was taken for one whose reader has left")
				case <-time.After(settled):
				}
				close(r.end)
			}
			if got := strings.Join(bodies(t, conn), ", "); got != strings.Join(c.want, ", ") {
				t.Error("answers:", got)
			}
		})
	}
}

// A reader that is gone ends its own requests, before or after it has closed its sending side, and
// nobody else's.
func TestResetEndsTheReadersOwnRequests(t *testing.T) {
	t.Parallel()
	for name, halfClosed := range map[string]bool{"open": false, "half-closed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, requests := hand(t)
			other := ask(t, address, get("/other"))
			_ = other.CloseWrite()
			beside := next(t, requests)
			conn := ask(t, address, get("/gone"))
			if halfClosed {
				_ = conn.CloseWrite()
			}
			r := next(t, requests)
			if halfClosed {
				time.Sleep(settled) // else the reset may overtake the end of input, which is the other case
			}
			_ = conn.SetLinger(0)
			_ = conn.Close()
			select {
			case <-r.ctx.Done():
			case <-time.After(20 * time.Second):
				t.Error("the reset was not noticed")
			}
			if beside.ctx.Err() != nil {
				t.Error("another reader's request was ended")
			}
			close(beside.end)
			if got := bodies(t, other); len(got) != 1 || got[0] != "200 /other" {
				t.Error(got)
			}
		})
	}
}

// A server that is closed does not wait for a reader that has closed its sending side.
func TestCloseEndsTheWatch(t *testing.T) {
	t.Parallel()
	var r request
	t.Run("open", func(t *testing.T) { // at whose end the server is closed
		address, requests := hand(t)
		_ = ask(t, address, get("/a")).CloseWrite()
		r = next(t, requests)
		time.Sleep(settled)
	})
	select {
	case <-r.ctx.Done():
	case <-time.After(20 * time.Second):
		t.Error("the request goes on 20 s after its server was closed")
	}
}

// What another reader of the bytes could take for the end of a request, or for a part of it, is
// never followed by an answer to something else (RFC 9112, 6.1).
func TestFaultyFramingClosesTheConnection(t *testing.T) {
	t.Parallel()
	const chunks = "3\r\nabc\r\n0\r\n\r\n"
	for name, text := range map[string]string{
		"two lengths":       "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
		"two, other order":  "GET /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + chunks,
		"chunked":           "GET /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
		"chunked, kept":     "GET /a HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
		"empty":             "GET /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"1.0, chunked":      "GET /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
		"1.0, two":          "GET /a HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
		"1.0, no body sent": "GET /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
		"1.0, unknown":      "GET /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: x\r\n\r\n",
		"1.0, kept":         "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, requests := hand(t)
			conn := ask(t, address, text+get("/smuggled"))
			r := next(t, requests)
			close(r.end)
			in := bufio.NewReader(conn)
			resp, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(body) != "/a" || !resp.Close {
				t.Errorf("%s %s: %q, close is %v", resp.Proto, resp.Status, body, resp.Close)
			}
			if rest, _ := io.ReadAll(in); len(rest) > 0 {
				t.Errorf("after the answer came %q", rest)
			}
			select {
			case r := <-requests:
				t.Error("answered as a request:", r.path)
			default:
			}
		})
	}
}
