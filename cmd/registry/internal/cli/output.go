package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/schollz/progressbar/v3"
)

// Bar shows progress to a person, on a terminal that it shares with lines of text. On anything else
// it only passes the lines on. Any goroutine may write lines; the rest is not safe for concurrent
// use.
type Bar struct {
	out   io.Writer
	shown atomic.Pointer[progressbar.ProgressBar] // nil while there is no bar
}

// NewBar returns a Bar on w that shows nothing yet.
func NewBar(w io.Writer) *Bar { return &Bar{out: w} }

// Start shows a bar of total steps; a total of 0 or less makes a counter without an end. The steps
// are bytes or events.
func (b *Bar) Start(title string, total int64, bytes bool) {
	if !IsTerminal(b.out) {
		return
	}
	if total <= 0 {
		total = -1
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(b.out),
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
	b.shown.Store(progressbar.NewOptions64(total, options...))
}

// Write writes whole lines in place of the bar; its next step shows it below them. (The library
// loses lines that it was to print when the bar is cleared.)
func (b *Bar) Write(lines []byte) (int, error) {
	if b.shown.Load() != nil {
		_, _ = io.WriteString(b.out, "\r\x1b[2K") // clears the line
	}
	return b.out.Write(lines)
}

// Add advances the bar by n steps.
func (b *Bar) Add(n int) {
	if bar := b.shown.Load(); bar != nil {
		_ = bar.Add(n) // a broken terminal does not stop the command
	}
}

// Set moves the bar to done of total steps.
func (b *Bar) Set(done, total int64) {
	if bar := b.shown.Load(); bar != nil {
		bar.ChangeMax64(max(total, 1))
		_ = bar.Set64(done)
	}
}

// Finish removes the bar, so that later output starts on an empty line.
func (b *Bar) Finish() {
	if bar := b.shown.Swap(nil); bar != nil {
		_ = bar.Finish()
	}
}

// Count returns a number of things in words: "1 event", "2 events".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Printable makes text of strangers safe for a terminal. It keeps letters, marks, numbers,
// punctuation, symbols and plain spaces. It shows other characters, such as control characters,
// line breaks and changes of writing direction, as their number.
func Printable(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	var s strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r):
			s.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&s, `\U%08x`, r)
		default:
			fmt.Fprintf(&s, `\u%04x`, r)
		}
	}
	return s.String()
}

// Interrupted replaces err by a plain word if ctrl-C has ended ctx.
func Interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}
