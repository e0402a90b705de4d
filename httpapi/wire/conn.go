package wire

import (
	"container/list"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxUnsent is how many bytes the system may buffer for one client. Its own bound is some MiB, which
// thousands of clients that do not read would multiply.
const maxUnsent = 128 << 10

// Conn is a connection whose half-closed client still gets its responses. The handler of a request
// may call [Conn.InputEnded] and [Conn.BoundUnsent]. net/http calls everything else.
type Conn struct {
	net.Conn
	release func() // releases the connection's slot; may be nil

	listener *listener     // may be nil
	place    *list.Element // among the listener's idle connections, whose lock it has; nil if it is not idle

	timed atomic.Bool // Reads have a deadline

	endOnce sync.Once     // closes ended
	ended   chan struct{} // see InputEnded
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

// Read waits for the client's next bytes.
//
// A Read without a deadline is net/http's watch for a disconnected client while a handler runs: it
// takes the end of input as a disconnect and ends the request's context. But a client that has
// half-closed the connection still waits for its response. So such a Read continues until the
// connection is reset or closed, or net/http ends its watch by a deadline.
func (c *Conn) Read(p []byte) (int, error) {
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

// Close closes the connection and releases its slot.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	if c.release != nil {
		c.release()
	}
	return err
}
