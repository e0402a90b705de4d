package broker

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
)

// logger writes the server's log to slog. Its Fatalf records the reason and returns, although the server
// expects Fatalf to end the process. The server then abandons its start.
type logger struct {
	slog *slog.Logger

	mu     sync.Mutex
	reason string // first fatal message, guarded by mu
}

func newLogger(l *slog.Logger) *logger {
	return &logger{slog: cmp.Or(l, slog.New(slog.DiscardHandler))}
}

// fatalReason returns the first fatal message, or "".
func (l *logger) fatalReason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// isDebug reports whether debug messages are enabled. If not, the server does not build them.
func (l *logger) isDebug() bool { return l.slog.Enabled(context.Background(), slog.LevelDebug) }

// logLine writes one line with a constant message. Clients can cause any number of lines, and the rate limit of
// the process's log counts lines with the same message together.
func (l *logger) logLine(level slog.Level, format string, v []any) {
	l.slog.Log(context.Background(), level, "embedded broker", "report", withoutDonations(fmt.Sprintf(format, v...)))
}

// Noticef logs at debug level: the server's notices are its start-up banner and connecting clients.
func (l *logger) Noticef(format string, v ...any) { l.logLine(slog.LevelDebug, format, v) }

// Warnf logs a warning.
func (l *logger) Warnf(format string, v ...any) { l.logLine(slog.LevelWarn, format, v) }

// Errorf logs an error.
func (l *logger) Errorf(format string, v ...any) { l.logLine(slog.LevelError, format, v) }

// Debugf logs a debug message.
func (l *logger) Debugf(format string, v ...any) { l.logLine(slog.LevelDebug, format, v) }

// Tracef drops protocol traces: they hold whole messages.
func (l *logger) Tracef(string, ...any) {}

// Fatalf records why the server cannot go on.
func (l *logger) Fatalf(format string, v ...any) {
	reason := withoutDonations(natserr.OneLine(fmt.Errorf(format, v...)))
	l.slog.Error("embedded broker", "report", reason)

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason == "" {
		l.reason = reason
	}
}

var (
	// clientWords matches a client's text in a protocol error of the server, up to the end of the error.
	clientWords = regexp.MustCompile(`(?s)(proto='|\(snip: |\bprocess\w+ [^"]*").*`)
	// subjectWords matches a subject of the registry and the punctuation after it, but not a file name in a path.
	subjectWords = regexp.MustCompile(`(^|[\s"'])registry\.\S*`)
)

// withoutDonations removes the ids of donations from a line of the server's log
// (events/CONTRACT.md#rejection).
func withoutDonations(line string) string {
	line = clientWords.ReplaceAllString(line, "$1…")
	return subjectWords.ReplaceAllStringFunc(line, func(found string) string {
		start := strings.Index(found, "registry.") // a space or a quotation mark may come first
		subject := strings.TrimRight(found[start:], `"',:;)`)
		return found[:start] + events.MaskSubject(subject, nil) + found[start+len(subject):]
	})
}
