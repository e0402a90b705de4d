package eventstest

import (
	"bytes"
	"strings"
	"sync"
)

// Log collects log lines. Any goroutine may write and read it; the zero value is empty.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends a line.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns everything written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often a text has been written.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
