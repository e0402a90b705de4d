package httpapi

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// loopback is both ends of a TCP connection, the first one lazy.
func loopback(t *testing.T) (*lazyConn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return newLazyConn(near), far
}

// wentOff waits until the timer that was set to at has gone off and been set anew.
func wentOff(t *testing.T, d *lazyDeadline, at time.Time) {
	t.Helper()
	eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return !d.timer.Equal(at)
	})
}

func TestLazyReadLastsUntilItsDeadline(t *testing.T) {
	for name, last := range map[string]time.Duration{"later": 200 * time.Millisecond, "sooner": 40 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			c, _ := loopback(t)
			_ = c.SetReadDeadline(time.Now().Add(80 * time.Millisecond))
			end := time.Now().Add(last)
			_ = c.SetReadDeadline(end)
			_, err := c.Read(make([]byte, 1))
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("Read: %v, want a deadline", err)
			}
			if time.Now().Before(end) {
				t.Errorf("ended %s before its deadline", time.Until(end))
			}
		})
	}
}

func TestLazyReadGoesOnAfterAnEarlyTimer(t *testing.T) {
	for name, later := range map[string]time.Time{"moved": time.Now().Add(time.Hour), "taken back": {}} {
		t.Run(name, func(t *testing.T) {
			c, far := loopback(t)
			soon := time.Now().Add(30 * time.Millisecond)
			_ = c.SetReadDeadline(soon)
			_ = c.SetReadDeadline(later)
			read := make(chan error, 1)
			go func() { _, err := io.ReadFull(c, make([]byte, 1)); read <- err }()
			wentOff(t, &c.read, soon)
			_, _ = far.Write([]byte("x"))
			if err := <-read; err != nil {
				t.Errorf("Read: %v, want the byte", err)
			}
		})
	}
}

// net/http ends the Read that watches for the reader's leaving by a deadline long ago, and reads on
// without one.
func TestLazyReadEndsAtOnceAndReadsAgain(t *testing.T) {
	c, far := loopback(t)
	_ = c.SetReadDeadline(time.Now().Add(time.Hour))
	for range 3 {
		ended := make(chan error)
		go func() { _, err := c.Read(make([]byte, 1)); ended <- err }()
		_ = c.SetReadDeadline(time.Unix(1, 0))
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("Read: %v, want a deadline", err)
		}
		_ = c.SetReadDeadline(time.Time{})
		if _, err := far.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatalf("Read: %d, %v, want the byte", n, err)
		}
	}
}

func TestLazyWrite(t *testing.T) {
	c, far := loopback(t)
	soon := time.Now().Add(20 * time.Millisecond)
	_ = c.SetWriteDeadline(soon)
	_ = c.SetWriteDeadline(time.Now().Add(time.Hour))
	const size = 16 << 20 // more than the system takes at once
	written := make(chan error, 1)
	go func() { _, err := c.Write(make([]byte, size)); written <- err }()
	wentOff(t, &c.write, soon) // in the middle of the write
	if n, err := io.Copy(io.Discard, io.LimitReader(far, size)); n != size || err != nil {
		t.Errorf("%d bytes arrived, want %d: %v", n, size, err)
	}
	if err := <-written; err != nil {
		t.Fatalf("Write: %v, want all of it", err)
	}
	_ = c.SetDeadline(time.Now().Add(30 * time.Millisecond))
	if _, err := c.Write(make([]byte, size)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Write to a reader that takes nothing: %v, want a deadline", err)
	}
}
