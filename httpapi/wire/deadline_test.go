package wire

import (
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// deadlines is a connection that notes the write deadlines it is given.
type deadlines struct {
	net.Conn
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.set = append(d.set, t); return nil }
func (d *deadlines) Write(p []byte) (int, error)        { return len(p), nil }

// TestWriteDeadline: a deadline is set when a Write needs it, and left in place only while it comes at most a sixteenth too
// early.
func TestWriteDeadline(t *testing.T) {
	inner := &deadlines{}
	c := newConn(inner, &sync.Pool{})
	now := time.Now()
	for i, step := range []struct {
		at  time.Time
		set bool
	}{
		{now.Add(15 * time.Second), true},
		{now.Add(15*time.Second + time.Millisecond), false},
		{now.Add(15*time.Second + 900*time.Millisecond), false},
		{now.Add(16*time.Second + time.Millisecond), true},
		{now.Add(10 * time.Second), true}, // shorter
		{time.Unix(1, 0), true},           // ends a Write
		{time.Unix(2, 0), true},
		{time.Time{}, true},
		{now.Add(15 * time.Second), true},
		{now.Add(500 * time.Millisecond), true},
		{now.Add(600 * time.Millisecond), true},
	} {
		before := len(inner.set)
		if err := errors.Join(c.SetWriteDeadline(time.Now().Add(time.Hour)), c.SetWriteDeadline(step.at)); err != nil {
			t.Fatal(err)
		}
		if len(inner.set) > before {
			t.Errorf("step %d: set before a Write", i)
		}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if got := len(inner.set) > before; got != step.set {
			t.Errorf("step %d: set is %v", i, got)
		}
	}
}

// TestReadDeadline: whatever deadlines came before, a Read times out at its own, to the nanosecond.
func TestReadDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, peer := net.Pipe()
		defer peer.Close()
		c := newConn(inner, &sync.Pool{})
		defer c.Close()
		in := func(d time.Duration) {
			t.Helper()
			if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
				t.Fatal(err)
			}
		}
		lasts := func(want time.Duration, text string) {
			t.Helper()
			begun, buf := time.Now(), make([]byte, 8)
			n, err := c.Read(buf)
			if took := time.Since(begun); took != want || string(buf[:n]) != text || (text == "") != errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%v: %q, %v after %v", want, buf[:n], err, took)
			}
		}
		var others sync.WaitGroup
		after := func(d time.Duration, do func()) {
			others.Go(func() { time.Sleep(d); do() })
		}
		in(time.Second)
		lasts(time.Second, "")
		lasts(0, "")
		in(10 * time.Second)
		after(time.Second, func() { _, _ = peer.Write([]byte("a")) })
		lasts(time.Second, "a")
		in(time.Minute) // the timer stays at 10 s
		lasts(time.Minute, "")
		in(time.Second)
		in(10 * time.Second)
		lasts(10*time.Second, "")
		in(time.Minute)
		after(time.Second, func() { in(time.Second) }) // shorter, while a Read runs
		lasts(2*time.Second, "")
		in(5 * time.Second)
		after(time.Second, func() { in(time.Hour) }) // longer
		lasts(time.Hour+time.Second, "")
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		after(24*time.Hour, func() { in(-time.Hour) }) // how net/http ends a Read
		lasts(24*time.Hour, "")
		others.Wait()
	})
}
