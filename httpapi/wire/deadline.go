package wire

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// deadline is when the Reads or the Writes of a connection time out. net/http sets eight for each request, most of them for
// calls that never wait, and each one that moves the connection's timer costs some 1 % of a look-up. So a deadline is only
// noted until a call needs it, and a timer that goes off a little early is left in place. No call outlasts its deadline.
//
// The zero time is never. Any goroutine may use it.
type deadline struct {
	write   bool // of Writes, which cannot be repeated: they time out early by at most a sixteenth of the time left
	mu      sync.Mutex
	running bool      // a call that waits
	until   time.Time // what net/http has set
	timer   time.Time // what the connection has
}

// set makes t the deadline. A call that runs gets it at once.
func (d *deadline) set(c net.Conn, t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = t
	if !d.running {
		return nil
	}
	return d.armLocked(c)
}

// begin notes that a call runs, and reports whether it has no deadline.
func (d *deadline) begin(c net.Conn) (never bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = true
	return d.until.IsZero(), d.armLocked(c)
}

func (d *deadline) armLocked(c net.Conn) error {
	if d.timer.Equal(d.until) || d.earlyEnoughLocked(time.Now()) {
		return nil
	}
	d.timer = d.until
	if d.write {
		return c.SetWriteDeadline(d.until)
	}
	return c.SetReadDeadline(d.until)
}

// earlyEnoughLocked reports whether the timer may stay.
func (d *deadline) earlyEnoughLocked(now time.Time) bool {
	switch {
	case !d.timer.After(now): // it has gone off, or there is none
		return false
	case !d.write: // the caller asks end, and reads again
		return d.until.IsZero() || !d.timer.After(d.until)
	}
	early := d.until.Sub(d.timer)
	return early >= 0 && early <= d.until.Sub(now)/16
}

// end notes that the call is over, with err, and reports whether the timer ended it before its deadline.
func (d *deadline) end(err error) (early bool) {
	timedOut := errors.Is(err, os.ErrDeadlineExceeded)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = false
	return timedOut && (d.until.IsZero() || d.until.After(time.Now()))
}
