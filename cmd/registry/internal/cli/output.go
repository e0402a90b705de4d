package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/schollz/progressbar/v3"
)

// Bar shows progress to a person. The zero value, used if standard error is no terminal, shows
// nothing. It is not safe for concurrent use.
type Bar struct{ shown *progressbar.ProgressBar }

// NewBar starts a bar of total steps on w; a total of 0 or less makes a counter without an end. The
// steps are bytes or events.
func NewBar(w io.Writer, title string, total int64, bytes bool) *Bar {
	if !IsTerminal(w) {
		return &Bar{}
	}
	if s, shared := w.(*Screen); shared {
		w = barWriter{s}
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
	return &Bar{progressbar.NewOptions64(total, options...)}
}

// Screen is a terminal that log lines and a bar share: a line replaces the bar, which is drawn
// again below it. Any goroutine may write to it.
type Screen struct {
	mu      sync.Mutex
	out     io.Writer
	begun   bool // the last line is incomplete
	written time.Time
}

// NewScreen returns a Screen on a terminal.
func NewScreen(out io.Writer) *Screen { return &Screen{out: out} }

// Shared returns a Screen if out is a terminal, else out.
func Shared(out io.Writer) io.Writer {
	if IsTerminal(out) {
		return NewScreen(out)
	}
	return out
}

// Write writes whole lines.
func (s *Screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		_, _ = io.WriteString(s.out, "\r\x1b[2K") // clears the line
		s.begun = false
	}
	s.written = time.Now()
	return s.out.Write(lines)
}

// Interrupted records that the terminal shows ^C at the start of the next line.
func (s *Screen) Interrupted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
}

// Quiet returns the time since the last write.
func (s *Screen) Quiet() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.written)
}

// barWriter draws a bar on a screen.
type barWriter struct{ *Screen }

func (b barWriter) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = true
	return b.out.Write(p)
}

// Add advances the bar by n steps.
func (b *Bar) Add(n int) {
	if b.shown != nil {
		_ = b.shown.Add(n) // a broken terminal does not stop the command
	}
}

// Set moves the bar to done of total steps.
func (b *Bar) Set(done, total int64) {
	if b.shown != nil {
		b.shown.ChangeMax64(max(total, 1))
		_ = b.shown.Set64(done)
	}
}

// Finish removes the bar, so that later output starts on an empty line.
func (b *Bar) Finish() {
	if b.shown != nil {
		_ = b.shown.Finish()
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
