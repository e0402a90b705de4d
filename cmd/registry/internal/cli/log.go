package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	queuedLines = 1000        // most lines that wait for a reader of the log; more are dropped
	flushWithin = time.Second // bounds the wait for the last lines

	// One message may be logged limitBurst times at once, then limitRate times a second.
	limitBurst = 20
	limitRate  = rate.Limit(1)

	// maxMessages bounds how many messages have a limit of their own. Messages are constant phrases, so only a
	// mistake in the program reaches the bound.
	maxMessages = 1000
)

// Log is the log of the server, which never waits for its reader: lines go through a bounded queue,
// and are dropped and counted if nobody reads them. Lines with the same message are limited, since
// strangers can cause many. Any goroutine may use a Log.
type Log struct {
	*slog.Logger

	out      io.Writer
	direct   *slog.Logger // writes to out at once, without the queue; for writeLine
	queue    chan []byte
	stop     chan struct{} // closed by Close
	done     chan struct{} // closed when writeLines ends
	dropped  atomic.Uint64
	reported uint64 // the value of dropped at the last report; only writeLine uses it
	limits   limits
}

// NewLog returns a log that writes to stderr in the format that the flags select. The caller closes it.
func (f LogFlags) NewLog(stderr io.Writer) *Log {
	l := &Log{out: stderr, queue: make(chan []byte, queuedLines), stop: make(chan struct{}), done: make(chan struct{})}
	l.limits.messages = map[string]*rate.Limiter{}
	l.direct = slog.New(f.newHandler(stderr, stderr))
	l.Logger = slog.New(limitedHandler{f.newHandler(l, stderr), &l.limits})
	go l.writeLines()
	return l
}

// Write queues whole lines. It never waits and never fails.
func (l *Log) Write(lines []byte) (int, error) {
	select {
	case l.queue <- bytes.Clone(lines):
	default:
		l.dropped.Add(1)
	}
	return len(lines), nil
}

// LostLines returns how many lines were dropped because nobody read the log, and how many by the limits.
func (l *Log) LostLines() (unread, limited uint64) {
	return l.dropped.Load(), l.limits.suppressed.Load()
}

// Close writes the queued lines, for at most a second.
func (l *Log) Close() {
	close(l.stop)
	select {
	case <-l.done:
	case <-time.After(flushWithin):
	}
}

// writeLines writes queued lines until Close, and then the last ones.
func (l *Log) writeLines() {
	defer close(l.done)
	for {
		select {
		case line := <-l.queue:
			l.writeLine(line)
		case <-l.stop:
			for len(l.queue) > 0 {
				l.writeLine(<-l.queue)
			}
			return
		}
	}
}

// writeLine writes a line, which may block, and then reports the lines dropped since the last report.
func (l *Log) writeLine(line []byte) {
	if _, err := l.out.Write(line); err != nil {
		l.dropped.Add(1)
		return
	}
	dropped := l.dropped.Load()
	if dropped > l.reported {
		l.direct.Warn("log lines were dropped, since nobody read them", "lines", dropped-l.reported)
		l.reported = dropped
	}
}

// limits has a limit for each message.
type limits struct {
	suppressed atomic.Uint64

	mu       sync.Mutex
	messages map[string]*rate.Limiter
}

// allow reports whether a line with the message may be logged.
func (l *limits) allow(message string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	// Messages beyond the bound share one limit.
	if l.messages[message] == nil && len(l.messages) >= maxMessages {
		message = ""
	}
	if l.messages[message] == nil {
		l.messages[message] = rate.NewLimiter(limitRate, limitBurst)
	}
	return l.messages[message].Allow()
}

// limitedHandler drops lines that exceed the limit of their message.
type limitedHandler struct {
	slog.Handler
	limits *limits
}

// Handle counts the lines that it drops.
func (h limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if !h.limits.allow(r.Message) {
		h.limits.suppressed.Add(1)
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the limits.
func (h limitedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limitedHandler{h.Handler.WithAttrs(attrs), h.limits}
}
