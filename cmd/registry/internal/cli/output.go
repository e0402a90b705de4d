package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// progressEvery is the time between two lines of progress.
const progressEvery = time.Second

// Progress prints how far a command is, in a line every second. The zero value prints nothing.
type Progress struct {
	out         io.Writer // a terminal, or nil
	title, unit string
	began, next time.Time
	done, total int64
}

// NewProgress returns a Progress that prints to w, if w is a terminal. The unit names the steps, such as
// "events".
func NewProgress(w io.Writer, title, unit string) *Progress {
	if !IsTerminal(w) {
		return &Progress{}
	}
	now := time.Now()
	return &Progress{out: w, title: title, unit: unit, began: now, next: now.Add(progressEvery)}
}

// Add advances the progress by n steps.
func (p *Progress) Add(n int) { p.Set(p.done+int64(n), p.total) }

// Set notes the number of steps made, and the total number of steps, which is 0 if unknown.
func (p *Progress) Set(done, total int64) {
	p.done = done
	p.total = total
	now := time.Now()
	if p.out == nil || now.Before(p.next) {
		return
	}

	p.next = now.Add(progressEvery)
	ofTotal := ""
	if total > 0 {
		ofTotal = fmt.Sprintf(" of %d", total)
	}

	rate := float64(done) / now.Sub(p.began).Seconds()
	line := fmt.Sprintf("%s: %d%s %s, %.0f/s", p.title, done, ofTotal, p.unit, rate)
	if total > 0 && rate > 0 {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		line += fmt.Sprintf(", %s left", left.Round(time.Second))
	}

	fmt.Fprintln(p.out, line) // a terminal that fails does not stop the command
}

// Count returns a number of things in words: "1 event", "2 events".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Printable makes text of strangers safe for a terminal: control characters, line breaks and changes of
// the writing direction are escaped as in Go.
func Printable(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) // a " in the text is harmless
}
