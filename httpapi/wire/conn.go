package wire

import (
	"bytes"
	"container/list"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Sizes of writes, in bytes. net/http buffers 4 KiB of a response and sends the rest in a second
// write.
const (
	minJoined = 4 << 10  // a body of at least this size takes two writes
	maxJoined = 64 << 10 // copying more is not worth a saved write

	// maxUnsent is what the system may buffer for one client. Its own bound is some MiB, which
	// thousands of clients that do not read would multiply.
	maxUnsent = 128 << 10
)

// Conn is a connection that can join two writes and splice formatted lines into the head of a
// response. The handler of a request may call [Conn.JoinWrites], [Conn.InsertHeader] and
// [Conn.BoundUnsent] before it writes, and [Conn.InputEnded] at any time. net/http calls everything
// else.
//
// A Conn holds bytes back only until the next Write, Read (the server waits for the next request)
// or Close, which send them first. So it is correct whatever net/http writes and when. It saves no
// write if net/http starts a Read between the two, to detect a disconnected client.
type Conn struct {
	net.Conn
	buffers *sync.Pool // of *[]byte, shared by the connections of a listener
	release func()     // releases the connection's slot; may be nil

	listener *listener     // may be nil
	place    *list.Element // among the listener's idle connections, whose lock it has; nil if it is not idle

	pending atomic.Bool // armed, lines or held is set; lets the other calls skip mu

	timed atomic.Bool // Reads have a deadline

	endOnce sync.Once     // closes ended
	ended   chan struct{} // see InputEnded

	mu    sync.Mutex // net/http writes in one goroutine and reads in another
	armed bool       // hold back the next write
	lines []byte     // to splice into the head that the next write begins with; not modified
	held  *[]byte    // bytes held back; may be nil
}

func newConn(c net.Conn, buffers *sync.Pool) *Conn {
	return &Conn{Conn: c, buffers: buffers, ended: make(chan struct{})}
}

// errNoHead ends a connection on which something other than the head of a response followed
// InsertHeader.
var errNoHead = errors.New("not the head of an answer")

// JoinWrites announces a body of size bytes, so that it leaves in one write with the head. It does
// nothing if net/http sends that size in one write anyway, or on a nil Conn.
func (c *Conn) JoinWrites(size int) {
	if c == nil || size < minJoined {
		return
	}
	c.mu.Lock()
	c.armed = true
	c.pending.Store(true)
	c.mu.Unlock()
}

// InputEnded returns a channel that is closed when the client half-closes the connection while a
// handler runs. The client may also have closed the connection; the next write tells. A nil Conn
// returns nil.
func (c *Conn) InputEnded() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.ended
}

// BoundUnsent bounds, approximately, the bytes that the system buffers for a client that does not
// read. It does nothing on a nil Conn.
func (c *Conn) BoundUnsent(size int) {
	if c == nil {
		return
	}
	if socket, ok := c.Conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = socket.SetWriteBuffer(size) // otherwise the system's own bound applies
	}
}

// InsertHeader splices lines, each with its line end, into the head of the response that the next
// Write begins. The caller must not modify lines afterwards, nor set any of these headers itself.
func (c *Conn) InsertHeader(lines []byte) {
	c.mu.Lock()
	c.lines = lines
	c.pending.Store(true)
	c.mu.Unlock()
}

// Write holds p back after JoinWrites. If sending it fails later, the next call reports that.
func (c *Conn) Write(p []byte) (int, error) {
	if !c.pending.Load() {
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lines != nil:
		return c.spliceLocked(p)
	case c.armed && c.held == nil && len(p) <= maxJoined:
		c.holdLocked(p)
		return len(p), nil
	}
	return c.joinLocked(p)
}

// spliceLocked inserts the lines after the first line of p, and sends both unless a body is to join
// them.
func (c *Conn) spliceLocked(p []byte) (int, error) {
	status := bytes.IndexByte(p, '\n') + 1
	if status == 0 || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return 0, errNoHead
	}
	wait := c.armed
	if err := c.flushLocked(); err != nil { // bytes of an earlier response
		return 0, err
	}
	c.holdLocked(p[:status], c.lines, p[status:])
	c.lines = nil
	if wait {
		return len(p), nil
	}
	if err := c.flushLocked(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// holdLocked holds back the parts.
func (c *Conn) holdLocked(parts ...[]byte) {
	buf, ok := c.buffers.Get().(*[]byte)
	if !ok {
		buf = new(make([]byte, 0, maxJoined))
	}
	for _, p := range parts {
		*buf = append(*buf, p...)
	}
	c.armed, c.held = false, buf
}

// joinLocked sends the held bytes and p, in one write unless copying costs more.
func (c *Conn) joinLocked(p []byte) (int, error) {
	if c.held == nil || len(*c.held)+len(p) > maxJoined {
		if err := c.flushLocked(); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	}
	*c.held = append(*c.held, p...)
	if err := c.flushLocked(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flushLocked sends the held bytes and disarms. Lines stay until their head comes.
func (c *Conn) flushLocked() (err error) {
	if c.held != nil {
		_, err = c.Conn.Write(*c.held)
		*c.held = (*c.held)[:0]
		c.buffers.Put(c.held)
	}
	c.held, c.armed = nil, false
	c.pending.Store(c.lines != nil)
	return err
}

// Read sends the held bytes before it waits.
//
// A Read without a deadline is net/http's watch for a disconnected client while a handler runs: it
// takes the end of input as a disconnect and ends the request's context. But a client that has
// half-closed the connection still waits for its response. So such a Read continues until the
// connection is reset or closed, or net/http ends its watch by a deadline.
func (c *Conn) Read(p []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	watch := !c.timed.Load()
	n, err := c.Conn.Read(p)
	if watch && n == 0 && err == io.EOF { //nolint:errorlint // net.Conn returns it as it is
		c.endOnce.Do(func() { close(c.ended) })
		err = awaitReset(c.Conn)
	}
	return n, err
}

// awaitReset waits until conn, whose input has ended, is reset or closed, or until its read
// deadline. It returns io.EOF for a reset. If the system does not report resets, it returns at
// once.
func awaitReset(conn net.Conn) error {
	socket, ok := conn.(syscall.Conn)
	if !ok || !tellsReset {
		return io.EOF
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	if err := raw.Read(isReset); err != nil { // called again on each event of the connection
		return err
	}
	return io.EOF
}

// SetReadDeadline records whether the next Read is a watch.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.timed.Store(!t.IsZero())
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline sets the deadline of Reads and of Writes.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close sends the held bytes, then closes.
func (c *Conn) Close() error {
	_ = c.flush() // the caller no longer cares what arrives
	err := c.Conn.Close()
	if c.release != nil {
		c.release()
	}
	return err
}

func (c *Conn) flush() error {
	if !c.pending.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flushLocked()
}
