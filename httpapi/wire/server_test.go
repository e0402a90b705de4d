package wire

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	require.NoError(t, err)
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
		require.NoError(t, err)
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

// A reader that asks and takes nothing is dropped once the write timeout is over, not later. It
// sends many requests, so that no buffer on the way takes all answers.
func TestReaderThatTakesNothingIsDropped(t *testing.T) {
	for _, joined := range []bool{false, true} {
		t.Run(fmt.Sprint("joined=", joined), func(t *testing.T) {
			t.Parallel()
			const timeout = 2 * time.Second
			body := make([]byte, 60000)
			begun, dropped := make(chan time.Time, 1<<12), make(chan time.Time, 1)
			srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begun <- time.Now()
				if joined {
					ConnOf(r).InsertHeader([]byte("A: b\r\n"))
					ConnOf(r).JoinWrites(len(body))
				}
				_, _ = w.Write(body)
			}), nil)
			srv.WriteTimeout = timeout
			srv.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateClosed {
					dropped <- time.Now()
				}
			}
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			done := make(chan struct{})
			go func() { defer close(done); _ = srv.Serve(LimitConnections(inner, 1)) }()
			defer func() { _ = srv.Close(); <-done }()
			c, err := net.Dial("tcp", inner.Addr().String())
			require.NoError(t, err)
			defer c.Close()
			go func() { // ends with the connection
				_, _ = io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", cap(begun)))
			}()
			var last time.Time
			for {
				select {
				case last = <-begun:
				case at := <-dropped:
					if took := at.Sub(last); took < timeout*9/10 || took > timeout*7/4 {
						t.Errorf("dropped %s after its last request began, want %s", took, timeout)
					}
					return
				case <-time.After(10 * timeout):
					t.Fatal("never dropped")
				}
			}
		})
	}
}
