package httpapi

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// The sizes of writes, in bytes. net/http collects an answer in 4 KiB and sends what exceeds
// them in a second write.
const (
	minJoined = 4 << 10  // a body from here on is sent in two writes
	maxJoined = 64 << 10 // what is worth copying to save one
)

// joinConn can send two writes as one, and put ready lines into the head of an answer.
//
// A page is some 12 KB, and half the cost of answering with it is in system calls, so saving one of
// two is worth more than anything the handler could save (measured: a fifth more pages a second).
// Of a look-up, whose body is small, net/http's work on the lines of the head was a quarter: they are copied,
// sorted and written anew for every answer although most are the same in all of them.
//
// Nothing is held for long: the second write, a Read (the server waits for the next request) and
// Close send what is held, so this is right whatever net/http writes and when. It only gains less
// when net/http starts to watch for the reader's leaving, a Read too, between the two writes.
type joinConn struct {
	net.Conn
	buffers *sync.Pool  // of *[]byte, shared by the connections of a listener
	pending atomic.Bool // armed, or there are lines, or something is held; may be read without mu

	mu    sync.Mutex // the server writes, and reads in another goroutine
	armed bool       // the next write is to be held
	lines []byte     // for the head that the next write begins with; not changed
	held  *[]byte    // nil: nothing
}

// errNoHead cuts a connection on which something else came where the head of an answer had to.
var errNoHead = errors.New("no head of an answer")

// arm makes the next Write wait for the one after it.
func (c *joinConn) arm() {
	c.mu.Lock()
	c.armed = true
	c.pending.Store(true)
	c.mu.Unlock()
}

// insert puts lines, each with its line end, into the head of the answer that the next Write begins with.
func (c *joinConn) insert(lines []byte) {
	c.mu.Lock()
	c.lines = lines
	c.pending.Store(true)
	c.mu.Unlock()
}

// Write holds p after arm. A failure to send what is held is reported by the next call.
func (c *joinConn) Write(p []byte) (int, error) {
	if !c.pending.Load() {
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lines != nil:
		return c.compose(p)
	case c.armed && c.held == nil && len(p) <= maxJoined:
		c.hold(p)
		return len(p), nil
	}
	return c.join(p)
}

// compose holds p with the lines after its first, and sends both unless there is more to come. The
// caller holds mu.
func (c *joinConn) compose(p []byte) (int, error) {
	status := bytes.IndexByte(p, '\n') + 1
	if status == 0 || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return 0, errNoHead
	}
	wait := c.armed
	if err := c.flush(); err != nil { // whatever came before
		return 0, err
	}
	c.hold(p[:status], c.lines, p[status:])
	c.lines = nil
	if wait {
		return len(p), nil
	}
	if err := c.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// hold begins what is held with the parts. The caller holds mu.
func (c *joinConn) hold(parts ...[]byte) {
	buf, ok := c.buffers.Get().(*[]byte)
	if !ok {
		buf = new(make([]byte, 0, maxJoined))
	}
	for _, p := range parts {
		*buf = append(*buf, p...)
	}
	c.armed, c.held = false, buf
}

// join sends what is held and p, in one write if that is not too much. The caller holds mu.
func (c *joinConn) join(p []byte) (int, error) {
	if c.held == nil || len(*c.held)+len(p) > maxJoined {
		if err := c.flush(); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	}
	*c.held = append(*c.held, p...)
	if err := c.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush sends what is held and disarms; lines go on waiting for their head. The caller holds mu.
func (c *joinConn) flush() (err error) {
	if c.held != nil {
		_, err = c.Conn.Write(*c.held)
		*c.held = (*c.held)[:0]
		c.buffers.Put(c.held)
	}
	c.held, c.armed = nil, false
	c.pending.Store(c.lines != nil)
	return err
}

// Read sends what is held before it waits.
func (c *joinConn) Read(p []byte) (int, error) {
	if err := c.settle(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Close sends what is held.
func (c *joinConn) Close() error {
	_ = c.settle() // who closes no longer cares what arrives
	return c.Conn.Close()
}

func (c *joinConn) settle() error {
	if !c.pending.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flush()
}
