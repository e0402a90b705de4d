package cli

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gate is a reader of the log that stops reading, goes on, or goes away.
type gate struct {
	open chan struct{} // closed once it reads

	mu   sync.Mutex
	text bytes.Buffer
	err  error
}

func (g *gate) Write(line []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return 0, g.err
	}
	return g.text.Write(line)
}

// Lines that nobody reads are dropped and counted, and the number is reported once lines can be
// written again. Nothing waits meanwhile.
func TestLogDrops(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	l := LogFlags{LogFormat: "json"}.NewLog(g)
	for range 3 * queuedLines {
		_, err := l.Write([]byte("line\n"))
		require.NoError(t, err)
	}
	unread, _ := l.LostLines()
	// One line may be on its way, beside those in the queue.
	require.GreaterOrEqual(t, unread, uint64(2*queuedLines-1))
	close(g.open)
	l.Close()
	require.Equal(t, 1, strings.Count(g.text.String(), `"msg":"log lines were dropped, since nobody read them","lines":`))
	require.Equal(t, 3*queuedLines, strings.Count(g.text.String(), "line\n")+int(unread))
}

// The end of the process waits a moment for the last lines, and no longer.
func TestLogCloseGivesUp(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	l := LogFlags{LogFormat: "json"}.NewLog(g)
	l.Info("never read")
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Fatal("Close waits for a reader that does not read")
	}
	close(g.open)
	<-l.done
}

// The lines of a reader that has gone are counted.
func TestLogWithoutReader(t *testing.T) {
	g := &gate{open: make(chan struct{}), err: errors.New("broken pipe")}
	close(g.open)
	l := LogFlags{LogFormat: "json"}.NewLog(g)
	l.Info("one")
	l.Info("two")
	l.Close()
	unread, _ := l.LostLines()
	require.Equal(t, uint64(2), unread)
}

// One message, as strangers can cause it, is limited; others are not.
func TestLogLimits(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	l := LogFlags{LogFormat: "json"}.NewLog(g)
	log := l.With("component", "broker")
	for range 10 * limitBurst {
		log.Error("client error")
	}
	log.Error("another")
	l.Close()
	written := strings.Count(g.text.String(), "client error")
	_, limited := l.LostLines()
	require.Equal(t, 10*limitBurst, written+int(limited))
	require.GreaterOrEqual(t, written, limitBurst)
	require.Less(t, written, 2*limitBurst)
	require.Contains(t, g.text.String(), `"msg":"another"`)
}
