package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// recorder is a connection that notes its writes. Reads end at once.
type recorder struct {
	net.Conn
	writes [][]byte
	closed bool
	err    error
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	r.writes = append(r.writes, bytes.Clone(p))
	return len(p), nil
}

func (r *recorder) Read([]byte) (int, error) { return 0, io.EOF }

func (r *recorder) Close() error { r.closed = true; return nil }

func joined() (*recorder, *Conn) {
	r := &recorder{}
	return r, newConn(r, &sync.Pool{})
}

func TestTwoWritesBecomeOne(t *testing.T) {
	r, c := joined()
	for range 3 {
		c.JoinWrites(minJoined)
		for _, p := range []string{"head", "body", "more"} {
			if n, err := c.Write([]byte(p)); n != 4 || err != nil {
				t.Errorf("%d %v", n, err)
			}
		}
	}
	if got := string(bytes.Join(r.writes, []byte("|"))); got != "headbody|more|headbody|more|headbody|more" {
		t.Error(got)
	}
}

// Whatever is written, read and closed in whatever order, the bytes arrive, in order, and all of
// them before a Read waits.
func TestJoiningLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, c := joined()
		var want []byte
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				c.JoinWrites(minJoined)
			case 1, 2:
				n := rapid.SampledFrom([]int{0, 1, 700, 4096, 20000, maxJoined - 4096, maxJoined, maxJoined + 1}).Draw(t, "size")
				p := bytes.Repeat([]byte{byte(len(want))}, n)
				want = append(want, p...)
				if got, err := c.Write(p); got != n || err != nil {
					t.Fatalf("%d %v", got, err)
				}
			case 3:
				_, _ = c.Read(nil)
				if got := bytes.Join(r.writes, nil); !bytes.Equal(got, want) {
					t.Fatalf("before a read %d bytes were sent, want %d", len(got), len(want))
				}
			}
		}
		_ = c.Close()
		if got := bytes.Join(r.writes, nil); !bytes.Equal(got, want) || !r.closed {
			t.Fatalf("%d bytes sent, want %d", len(got), len(want))
		}
	})
}

// Lines get into the next head whatever is read before it, once, and into nothing but a head.
func TestLinesGoIntoTheHead(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nA: b\r\n\r\n"
	for _, armed := range []bool{false, true} {
		r, c := joined()
		for range 2 {
			c.InsertHeader([]byte("L: m\r\n"))
			if armed {
				c.JoinWrites(minJoined)
			}
			_, _ = c.Read(nil)
			for _, p := range []string{head, "body"} {
				if n, err := c.Write([]byte(p)); n != len(p) || err != nil {
					t.Errorf("%d %v", n, err)
				}
			}
		}
		once := "HTTP/1.1 200 OK\r\nL: m\r\nA: b\r\n\r\nbody"
		if got := string(bytes.Join(r.writes, nil)); got != once+once {
			t.Errorf("armed %v: %q", armed, got)
		}
	}
	for _, p := range []string{"body\n", "HTTP/1.1 200 OK", ""} {
		r, c := joined()
		c.InsertHeader([]byte("L: m\r\n"))
		if _, err := c.Write([]byte(p)); !errors.Is(err, errNoHead) || len(r.writes) > 0 {
			t.Errorf("after %q: %v, sent %q", p, err, r.writes)
		}
	}
}

// A page can be one write with lines in its head, too.
func TestLinesAndBodyAreOneWrite(t *testing.T) {
	r, c := joined()
	c.InsertHeader([]byte("L: m\r\n"))
	c.JoinWrites(minJoined)
	for _, p := range []string{"HTTP/1.1 200 OK\r\n\r\n", "body"} {
		_, _ = c.Write([]byte(p))
	}
	if len(r.writes) != 1 {
		t.Errorf("%q", r.writes)
	}
}

// What is held for a body that does not come is sent before the next head.
func TestLinesAfterWhatIsHeld(t *testing.T) {
	r, c := joined()
	c.JoinWrites(minJoined)
	_, _ = c.Write([]byte("first"))
	c.InsertHeader([]byte("L: m\r\n"))
	_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	if got := string(bytes.Join(r.writes, []byte("|"))); got != "first|HTTP/1.1 200 OK\r\nL: m\r\n\r\n" {
		t.Errorf("%q", got)
	}
}

func TestJoiningReportsFailure(t *testing.T) {
	broken := errors.New("broken")
	for name, use := range map[string]func(c *Conn) error{
		"write": func(c *Conn) error { _, err := c.Write([]byte("b")); return err },
		"large": func(c *Conn) error { _, err := c.Write(make([]byte, maxJoined)); return err },
		"read":  func(c *Conn) error { _, err := c.Read(nil); return err },
	} {
		r, c := joined()
		r.err = broken
		c.JoinWrites(minJoined)
		if _, err := c.Write([]byte("a")); err != nil {
			t.Errorf("%s: holding failed: %v", name, err)
		}
		if err := use(c); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// counter is a listener that counts the writes of its connections.
type counter struct {
	net.Listener
	writes *atomic.Int64
}

func (c counter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return countedConn{conn, c.writes}, err
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// A page can be one write, as a small answer is; a very large one is two. Answers of every size
// around the buffer of net/http arrive whole.
func TestPagesAreOneWrite(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var writes atomic.Int64
	var size atomic.Int64
	srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(size.Load())
		ConnOf(r).JoinWrites(n)
		w.Header().Set("Content-Length", strconv.Itoa(n))
		_, _ = w.Write(bytes.Repeat([]byte("x"), n))
	}), nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(LimitConnections(counter{l, &writes}, Limits{Connections: 8}))
	}()
	defer func() { _ = srv.Close(); <-done }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(n int) int64 {
		size.Store(int64(n))
		before := writes.Load()
		resp, err := client.Get("http://" + l.Addr().String())
		require.NoError(t, err)
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); len(body) != n || err != nil {
			t.Fatalf("%d of %d bytes: %v", len(body), n, err)
		}
		return writes.Load() - before
	}
	for n := 3800; n < 4300; n += 7 {
		get(n)
	}
	for n, want := range map[int]int64{100: 1, 4096: 1, 12000: 1, 60000: 1, 100000: 2} {
		for deadline := time.Now().Add(10 * time.Second); get(n) != want; { // not always: see Conn
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes never took %d writes", n, want)
			}
		}
	}
}
