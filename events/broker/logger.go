package broker

import (
	"context"

	"fmt"
	"log/slog"
	"sync"
)

// logger hands the server's log to slog. Its Fatalf records the reason and returns: the
// server expects it to exit, and then gives up what it was doing.
type logger struct {
	slog *slog.Logger

	mu     sync.Mutex
	reason string // first fatal message, guarded by mu
}

func newLogger(l *slog.Logger) *logger {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return &logger{slog: l.With("component", "broker")}
}

// fatal is the first fatal message, or empty.
func (l *logger) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// debug is true when debug messages are wanted: making them costs the server something.
func (l *logger) debug() bool { return l.slog.Enabled(context.Background(), slog.LevelDebug) }

func (l *logger) log(level slog.Level, format string, v []any) {
	l.slog.Log(context.Background(), level, fmt.Sprintf(format, v...))
}

// Noticef is debug to us: the server's notices are its start-up banner and client accounting.
func (l *logger) Noticef(format string, v ...any) { l.log(slog.LevelDebug, format, v) }

// Warnf logs a warning.
func (l *logger) Warnf(format string, v ...any) { l.log(slog.LevelWarn, format, v) }

// Errorf logs an error.
func (l *logger) Errorf(format string, v ...any) { l.log(slog.LevelError, format, v) }

// Debugf logs a debug message.
func (l *logger) Debugf(format string, v ...any) { l.log(slog.LevelDebug, format, v) }

// Tracef drops protocol traces: they hold whole messages.
func (l *logger) Tracef(string, ...any) {}

// Fatalf records why the server cannot go on.
func (l *logger) Fatalf(format string, v ...any) {
	reason := oneLine(fmt.Errorf(format, v...)).Error()
	l.slog.Error(reason)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason == "" {
		l.reason = reason
	}
}
