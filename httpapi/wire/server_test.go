package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The parts of the listeners, and something for files, fit into the descriptors there are.
func TestDescriptors(t *testing.T) {
	for _, n := range []uint64{0, 1, 20, 64, 100, 256, 1024, 4096, 20_000, 1 << 20, 1<<64 - 1} {
		p := partsOf(n)
		if p.Public < 1 || p.Operators < 4 || p.Broker < 8 {
			t.Errorf("%d descriptors: %+v", n, p)
		}
		if sum := uint64(p.Public + p.Operators + p.Broker); n >= 64 && sum+min(n/16, 128) > n {
			t.Errorf("%d descriptors: %+v leaves nothing for files", n, p)
		}
	}
	if p := partsOf(1024); p.Public < 600 {
		t.Errorf("%+v", p)
	}
	if n := descriptorLimit(); n < 64 {
		t.Errorf("descriptor limit %d", n)
	}
}

// limited serves over a listener with limits, whose clients are the peers' addresses, all known.
func limited(t *testing.T, connections int) (address string, refused *[2]atomic.Int32) {
	t.Helper()
	refused = &[2]atomic.Int32{}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}), nil)
	l := LimitConnections(inner, Limits{Connections: connections, Refused: func(share bool) {
		if share {
			refused[1].Add(1)
		} else {
			refused[0].Add(1)
		}
	}, Client: func(a netip.Addr) (netip.Addr, bool) { return a, true }})
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return inner.Addr().String(), refused
}

// dialFrom opens a connection from an address and, if ask is set, is answered on it once.
func dialFrom(t *testing.T, from, to string, ask bool) (net.Conn, error) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if !ask {
		return c, nil
	}
	if _, err := io.WriteString(c, get("/")); err != nil {
		return nil, err
	}
	_, err = c.Read(make([]byte, 1024))
	return c, err
}

// One address holds at most a quarter of the connections; more of it are closed at once, and others
// are answered beside it.
func TestNoAddressTakesAllConnections(t *testing.T) {
	t.Parallel()
	address, refused := limited(t, 40)
	held := 0
	for range 60 {
		if _, err := dialFrom(t, "127.0.0.2", address, true); err == nil {
			held++
		}
	}
	if held != 10 || refused[1].Load() != 50 {
		t.Errorf("%d of 40 connections, %d refused", held, refused[1].Load())
	}
	_, err := dialFrom(t, "127.0.0.3", address, true)
	require.NoError(t, err)
}

// Where all connections are taken by clients that ask nothing more, the one that has been idle
// longest makes room, for each that comes.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	address, refused := limited(t, 16)
	var held []net.Conn
	for i := range 16 {
		// The first half asks nothing, so it is idle from when it is accepted, in that order. When a
		// connection that was answered becomes idle is seen by the server alone.
		c, err := dialFrom(t, fmt.Sprint("127.0.1.", 1+i), address, i >= 8)
		require.NoError(t, err)
		held = append(held, c)
	}

	for i := range 8 {
		_, err := dialFrom(t, fmt.Sprint("127.0.2.", 1+i), address, true)
		require.NoError(t, err)
	}
	if n := refused[0].Load(); n != 8 {
		t.Errorf("%d connections were closed for 8", n)
	}
	for i, c := range held[:8] {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d, of the eight that were idle longest, is open: %v", i, err)
		}
	}
	if _, err := io.WriteString(held[15], get("/")); err != nil {
		t.Error("the last one was closed:", err)
	}

	// Those that were answered make room, too.
	for i := range 8 {
		_, err := dialFrom(t, fmt.Sprint("127.0.3.", 1+i), address, true)
		require.NoError(t, err)
	}
	if n := refused[0].Load(); n != 16 {
		t.Errorf("%d connections were closed for 16", n)
	}
}

// One connection more than allowed waits until another closes.
func TestLimitConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := LimitConnections(inner, Limits{Connections: 1})
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

// A reader that asks and takes nothing is dropped once the write timeout is over, not before. It
// sends many requests, so that no buffer on the way takes all answers.
func TestReaderThatTakesNothingIsDropped(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	body := make([]byte, 60000)
	begun, dropped := make(chan time.Time, 1<<12), make(chan time.Time, 1)
	srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		begun <- time.Now()
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
	go func() { defer close(done); _ = srv.Serve(LimitConnections(inner, Limits{Connections: 1})) }()
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
			if took := at.Sub(last); took < timeout/2 { // it may begin long after its time does
				t.Errorf("dropped %s after its last request began, want %s", took, timeout)
			}
			return
		case <-time.After(10 * timeout):
			t.Fatal("never dropped")
		}
	}
}
