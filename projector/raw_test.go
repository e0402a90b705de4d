package projector

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rawConn is a connection to a broker on which a test writes the protocol itself, since no client
// library sends headers that none can read.
type rawConn struct {
	t     testing.TB
	conn  net.Conn
	lines *bufio.Reader
}

// dialRaw connects to the broker at addr without credentials, until the test's end.
func dialRaw(t testing.TB, addr string) *rawConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 30*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	r := &rawConn{t, conn, bufio.NewReader(conn)}
	r.write(`CONNECT {"verbose":false,"headers":true,"no_responders":true,"protocol":1}` + "\r\nSUB raw.ack 1\r\n")
	return r
}

func (r *rawConn) write(s string) {
	r.t.Helper()
	require.NoError(r.t, r.conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err := r.conn.Write([]byte(s))
	require.NoError(r.t, err)
}

// publish publishes a message with a block of headers, byte for byte, and returns its sequence in
// the stream that stores it. An empty block is a message without headers. It waits for a
// new stream to accept messages.
func (r *rawConn) publish(subject, block string, payload []byte) uint64 {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		if block == "" {
			r.write(fmt.Sprintf("PUB %s raw.ack %d\r\n%s\r\n", subject, len(payload), payload))
		} else {
			r.write(fmt.Sprintf("HPUB %s raw.ack %d %d\r\n%s%s\r\n", subject, len(block), len(block)+len(payload), block, payload))
		}
		if sequence := r.acknowledged(); sequence > 0 {
			return sequence
		}
	}
	r.t.Fatalf("%s: nothing takes the message", subject)
	return 0
}

// acknowledged reads the answer to a message: its sequence, or 0 if no stream listens yet.
func (r *rawConn) acknowledged() uint64 {
	r.t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		require.NoError(r.t, err)
		switch {
		case strings.HasPrefix(line, "PING"):
			r.write("PONG\r\n")
		case strings.HasPrefix(line, "-ERR"):
			r.t.Fatalf("the broker says %s", line)
		case strings.HasPrefix(line, "NATS/1.0 503"):
			return 0
		case strings.HasPrefix(line, "{"):
			var ack struct {
				Sequence uint64 `json:"seq"`
			}
			if err := json.Unmarshal([]byte(line), &ack); err != nil || ack.Sequence == 0 {
				r.t.Fatalf("the broker says %s", line)
			}
			return ack.Sequence
		}
	}
}
