package cli

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
	synctest.Test(t, func(t *testing.T) {
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
	})
}

// The end of the process waits a second for the last lines, and no longer.
func TestLogCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		l := LogFlags{LogFormat: "json"}.NewLog(g)
		l.Info("never read")
		began := time.Now()
		l.Close()
		require.Equal(t, flushWithin, time.Since(began))
		close(g.open)
		<-l.done
	})
}

// The lines of a reader that has gone are counted.
func TestLogWithoutReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{}), err: errors.New("broken pipe")}
		close(g.open)
		l := LogFlags{LogFormat: "json"}.NewLog(g)
		l.Info("one")
		l.Info("two")
		l.Close()
		unread, _ := l.LostLines()
		require.Equal(t, uint64(2), unread)
	})
}

// One message, as strangers can cause it, is limited; others are not.
func TestLogLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		require.Equal(t, limitBurst, written)
		require.EqualValues(t, 9*limitBurst, limited)
		require.Contains(t, g.text.String(), `"msg":"another"`)
	})
}
