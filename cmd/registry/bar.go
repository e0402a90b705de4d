package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar shows progress to a person. The zero value, used where standard error is no terminal,
// shows nothing. One goroutine at a time may use it.
type bar struct{ shown *progressbar.ProgressBar }

// newBar starts a bar of total steps on w; total 0 or less shows a counter without an end.
func newBar(w io.Writer, title string, total int64, bytes bool) *bar {
	if !isTerminal(w) {
		return &bar{}
	}
	if total <= 0 {
		total = -1
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(title),
		progressbar.OptionShowBytes(bytes),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30),
	}
	if !bytes {
		options = append(options, progressbar.OptionShowIts(), progressbar.OptionSetItsString("events"))
	}
	return &bar{progressbar.NewOptions64(total, options...)}
}

// add moves the bar by n steps.
func (b *bar) add(n int) {
	if b.shown != nil {
		_ = b.shown.Add(n) // a terminal that cannot be written to is no reason to stop
	}
}

// set moves the bar to done of total steps.
func (b *bar) set(done, total int64) {
	if b.shown != nil {
		b.shown.ChangeMax64(max(total, 1))
		_ = b.shown.Set64(done)
	}
}

// finish removes the bar, so that what is printed next starts on an empty line.
func (b *bar) finish() {
	if b.shown != nil {
		_ = b.shown.Finish()
	}
}
