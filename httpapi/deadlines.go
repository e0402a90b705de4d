package httpapi

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// lazyConn is a connection whose deadlines cost little to move. net/http moves them six times a
// request, and each time costs a timer; here the timer is left where it is as long as it is not
// later than the deadline, and only when it goes off is the deadline looked at (measured: 3 % of
// what a look-up costs). So nothing ever lasts longer than its deadline, and what a timer ended too
// early goes on.
type lazyConn struct {
	net.Conn
	read, write lazyDeadline
}

func newLazyConn(c net.Conn) *lazyConn {
	l := &lazyConn{Conn: c}
	l.read.set, l.write.set = c.SetReadDeadline, c.SetWriteDeadline
	return l
}

// lazyDeadline is the deadline of one direction. Any goroutine may use it.
type lazyDeadline struct {
	set func(time.Time) error // moves the timer

	mu    sync.Mutex
	at    time.Time // the deadline; zero: none
	timer time.Time // not later than at; zero: none
	rest  time.Time // what the timer was before it was longAgo
	ended bool      // the timer is longAgo
}

// longAgo is before any deadline that is to come: net/http sets one to end a Read at once.
const longAgo = 1e9 // seconds since 1970

// move makes t the deadline. After one of longAgo the timer must be set anew: to where it was, even
// where there is no deadline, since the next one will not be sooner. It may have gone by: then it goes
// off once for nothing.
func (d *lazyDeadline) move(t time.Time) (err error) {
	d.mu.Lock()
	d.at = t
	switch {
	case t.IsZero() && d.ended:
		err = d.arm(d.rest)
	case t.IsZero() || !d.ended && !d.timer.IsZero() && !t.Before(d.timer):
	default:
		err = d.arm(t)
	}
	d.mu.Unlock() // not deferred: this is called six times a request
	return err
}

func (d *lazyDeadline) arm(t time.Time) error {
	ends := !t.IsZero() && t.Unix() < longAgo
	if ends && !d.ended {
		d.rest = d.timer
	}
	d.timer, d.ended = t, ends
	return d.set(t)
}

// early says whether err is the timer's and the deadline is still to come; the timer is then set
// to it.
func (d *lazyDeadline) early(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.at.IsZero() && !d.at.After(time.Now()) {
		return false
	}
	return d.arm(d.at) == nil
}

// SetReadDeadline is part of net.Conn.
func (c *lazyConn) SetReadDeadline(t time.Time) error { return c.read.move(t) }

// SetWriteDeadline is part of net.Conn.
func (c *lazyConn) SetWriteDeadline(t time.Time) error { return c.write.move(t) }

// SetDeadline is part of net.Conn.
func (c *lazyConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Read is part of net.Conn.
func (c *lazyConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if n > 0 || !c.read.early(err) {
			return n, err
		}
	}
}

// Write is part of net.Conn.
func (c *lazyConn) Write(p []byte) (sent int, err error) {
	for {
		n, err := c.Conn.Write(p[sent:])
		sent += n
		if !c.write.early(err) {
			return sent, err
		}
	}
}
