package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// text is an input that is not a file.
func text(name, content string) input {
	return input{name: name, open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

// FuzzReadLines compares the reading with the obvious way: split, trim, drop blanks.
func FuzzReadLines(f *testing.F) {
	f.Add("a\nb", "")
	f.Add("\n \r\n\tx\r\n", "y\n")
	f.Add(strings.Repeat("long ", 40_000), strings.Repeat("s\n", 600))
	f.Fuzz(func(t *testing.T, first, second string) {
		var got []string
		err := eachLine(t.Context(), []input{text("1", first), text("2", second)}, func(l *line) error {
			got = append(got, fmt.Sprintf("%s %q", l.position(), l.payload))
			return nil
		}, never)
		require.NoError(t, err)
		want := append(naiveLines("1", first), naiveLines("2", second)...)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func naiveLines(file, content string) []string {
	var out []string
	for i, l := range strings.Split(content, "\n") {
		payload := bytes.TrimSpace([]byte(l))
		if len(l) > maxLine {
			out = append(out, fmt.Sprintf("%s:%d %q", file, i+1, ""))
		} else if len(payload) > 0 {
			out = append(out, fmt.Sprintf("%s:%d %q", file, i+1, payload))
		}
	}
	return out
}

// The bound counts the line without its break, whatever the reader's buffer.
func TestLongestLine(t *testing.T) {
	for _, c := range []struct {
		size int
		end  string
		ok   bool
	}{{maxLine, "\n", true}, {maxLine, "", true}, {maxLine + 1, "\n", false}, {maxLine + 1, "", false}, {3 * maxLine, "\nx", false}} {
		var lines []line
		in := text("f", strings.Repeat("x", c.size)+c.end)
		err := eachLine(t.Context(), []input{in}, func(l *line) error { lines = append(lines, *l); return nil }, never)
		if err != nil || strings.Contains(lines[0].err.Error(), "longer than 1 MiB") == c.ok || c.ok && len(lines[0].payload) != c.size {
			t.Errorf("%d bytes and %q: %v, %v", c.size, c.end, lines[0].err, err)
		}
		if !c.ok && lines[0].payload != nil {
			t.Errorf("%d bytes: the line is kept", c.size)
		}
	}
}

// never is for inputs that do not pause; if they do, there is nothing to be done.
func never() error { return nil }

// What a pipe has brought is handed on before it brings more, or ends.
func TestEachLineOfAPause(t *testing.T) {
	read, write := io.Pipe()
	in := input{name: "-", open: func() (io.ReadCloser, error) { return read, nil }}
	lines := 0
	more := func(text string) { // the write returns once it is read: not here, on the consumer's goroutine
		go func() {
			if _, err := io.WriteString(write, text); err != nil {
				t.Error(err)
			}
		}()
	}
	more("1\n2\n3 has no end y")
	asked := 0
	err := eachLine(t.Context(), []input{in}, func(*line) error { lines++; return nil }, func() error {
		switch {
		case lines == 2 && asked == 0:
			asked = 2
			more("et\n")
		case lines == 3 && asked == 2:
			asked = 3
			return write.Close()
		}
		return nil
	})
	if err != nil || lines != 3 || asked != 3 {
		t.Errorf("%d lines, asked after %d, %v", lines, asked, err)
	}
}

// A pipe that brings a line every 50 ms never falls silent. Each line is still sent soon: it
// may be a delisting.
func TestEachLineOfATrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines = 40
		read, write := io.Pipe()
		go func() {
			tick := time.NewTicker(inputPause / 2)
			defer tick.Stop()
			for range lines {
				<-tick.C
				if _, err := io.WriteString(write, "x\n"); err != nil {
					t.Error(err)
				}
			}
			write.Close()
		}()
		var pending []time.Time
		sent := 0
		in := input{name: "-", open: func() (io.ReadCloser, error) { return read, nil }}
		err := eachLine(t.Context(), []input{in}, func(*line) error { pending = append(pending, time.Now()); return nil }, func() error {
			for _, came := range pending {
				if age := time.Since(came); age > inputPause {
					t.Errorf("a line is sent after %v", age)
				}
			}
			sent, pending = sent+len(pending), nil
			return nil
		})
		if err != nil || sent < lines-3 {
			t.Errorf("%d lines sent before the end, %v", sent, err)
		}
	})
}

// A run that ends does not wait for an input that is silent, standard input included.
func TestEachLineEndsWhileTheInputIsSilent(t *testing.T) {
	enough := errors.New("enough")
	silent, write := io.Pipe()
	inputs, err := openInputs([]string{"-"}, silent)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	if err := eachLine(ctx, inputs, nil, func() error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := eachLine(t.Context(), inputs, nil, func() error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	write.Close() // the copying goroutines end with their input (goleak in TestMain)
}

// Lines come in input order.
func TestEachLineKeepsTheOrder(t *testing.T) {
	var all strings.Builder
	made := eventstest.Events(5000, 9)
	for _, e := range made {
		payload, err := events.Encode(e)
		require.NoError(t, err)
		all.Write(append(payload, '\n'))
	}
	n := 0
	err := eachLine(t.Context(), []input{text("f", all.String())}, func(l *line) error {
		if l.err != nil || l.number != n+1 || l.message.Event != made[n] {
			return fmt.Errorf("line %d: %v", l.number, l.err)
		}
		n++
		return nil
	}, never)
	if err != nil || n != len(made) {
		t.Errorf("%d lines, %v", n, err)
	}
}

// A reader that stops early, or fails, must leave no goroutine behind (goleak in TestMain).
func TestEachLineEnds(t *testing.T) {
	enough := errors.New("enough")
	many := text("many", strings.Repeat("{}\n", 100_000))
	if err := eachLine(t.Context(), []input{many}, func(*line) error { return enough }, never); !errors.Is(err, enough) {
		t.Error(err)
	}
	broken := input{name: "broken", open: func() (io.ReadCloser, error) { return nil, enough }}
	if err := eachLine(t.Context(), []input{many, broken}, func(*line) error { return nil }, never); !errors.Is(err, enough) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := eachLine(ctx, []input{many}, func(*line) error { return nil }, never); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
