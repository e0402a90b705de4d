package eventstest

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

// Raw is a connection to a broker on which a test writes the protocol itself, since no client
// library sends headers that none can read.
type Raw struct {
	t     testing.TB
	conn  net.Conn
	lines *bufio.Reader
}

// DialRaw connects to the broker at addr without credentials, until the test's end.
func DialRaw(t testing.TB, addr string) *Raw {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	r := &Raw{t, conn, bufio.NewReader(conn)}
	r.write(`CONNECT {"verbose":false,"headers":true,"no_responders":true,"protocol":1}` + "\r\nSUB raw.ack 1\r\n")
	return r
}

func (r *Raw) write(s string) {
	r.t.Helper()
	require.NoError(r.t, r.conn.SetDeadline(time.Now().Add(patience)))
	_, err := r.conn.Write([]byte(s))
	require.NoError(r.t, err)
}

// Publish publishes a message with a block of headers, byte for byte, and returns its sequence in
// the stream that stores it. An empty block is a message without headers. Like send, it waits for a
// new stream to accept messages.
func (r *Raw) Publish(subject, block string, payload []byte) uint64 {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
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
func (r *Raw) acknowledged() uint64 {
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
