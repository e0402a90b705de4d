package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What the connection puts into the head of an answer is what net/http would have written itself,
// whatever came before on the connection.
func TestLinesAreTheHeaders(t *testing.T) {
	f := serve(t, withSite)
	joining, plain := dialed(t, f.addr), dialed(t, listenOver(t, NewServer(f.public, nil), nil))
	tag := joining.ask(t, "GET", "/api/scammers").Get("Etag")
	for round := range 3 {
		for _, path := range []string{
			"/api/scammers", "/api/scammers?limit=3", "/api/servers?limit=1", "/api/legit", "/api/check?search=nobody", "/api/check?id=1",
			"/api/donate/status?id=d-1", "/api/scammers?limit=x", "/nowhere", "/scammers", "/", "/openapi.yaml",
		} {
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST"} {
				for _, header := range []string{
					"", "Accept-Encoding: gzip", "If-None-Match: " + tag, "If-None-Match: *",
					"Registry-Min-Sequence: 1", "Registry-Min-Sequence: x",
				} {
					got, want := joining.ask(t, method, path, header), plain.ask(t, method, path, header)
					if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
						t.Fatalf("round %d: %s %s %s:\n%v, without lines\n%v", round, method, path, header, got, want)
					}
				}
			}
		}
		f.apply(people()[0]) // the next round is at another state
	}
}

// Requests that are sent together are answered one after the other, with and without lines.
func TestLinesInAPipeline(t *testing.T) {
	f := serve(t, withSite)
	d := dialed(t, f.addr)
	paths := strings.Fields("/api/scammers / /api/check?search=s1 /api/scammers?limit=x /api/scammers?limit=50 /scammers /api/legit")
	var all strings.Builder
	for _, path := range paths {
		fmt.Fprintf(&all, "GET %s HTTP/1.1\r\nHost: registry\r\n\r\n", path)
	}
	for range 5 {
		if _, err := io.WriteString(d, all.String()); err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if h := d.read(t, "GET"); h["Status"][0] == "200 OK" != (len(h["Registry-Sequence"]) == 1) || len(h["Registry-Sequence"]) > 1 {
				t.Fatalf("%s: %v", path, h)
			}
		}
	}
}

// dial is one connection that a test asks on, again and again.
type dial struct {
	net.Conn
	in *bufio.Reader
}

func dialed(t *testing.T, addr string) dial {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return dial{c, bufio.NewReader(c)}
}

// ask is the header of the answer, its status and the length of its body included, without the time.
func (d dial) ask(t *testing.T, method, path string, lines ...string) http.Header {
	t.Helper()
	head := strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\r\n")
	if head != "" {
		head += "\r\n"
	}
	if _, err := fmt.Fprintf(d, "%s %s HTTP/1.1\r\nHost: registry\r\n%s\r\n", method, path, head); err != nil {
		t.Fatal(err)
	}
	return d.read(t, method)
}

// read is ask's answer alone.
func (d dial) read(t *testing.T, method string) http.Header {
	t.Helper()
	resp, err := http.ReadResponse(d.in, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Header["Status"] = []string{resp.Status, fmt.Sprint(n)}
	delete(resp.Header, "Date")
	return resp.Header
}
