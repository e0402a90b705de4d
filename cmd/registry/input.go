package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/publish"
	"example.org/registry/projector/recovery"
)

// input is one FILE argument of publish.
type input struct {
	name  string // as messages show it
	size  int64  // bytes, if sized; a pipe's size is unknown
	sized bool
	open  func() (io.ReadCloser, error)
}

// openInputs checks every file before anything is sent, so that a mistyped fifth name is not found
// after four files have been published.
func openInputs(files []string, stdin io.Reader) ([]input, error) {
	var inputs []input
	standard := false
	for _, name := range files {
		if name == "-" {
			if standard {
				return nil, cli.Usagef("FILE: standard input (-) is given twice")
			}
			standard = true
			inputs = append(inputs, input{name: "-", open: func() (io.ReadCloser, error) { return closable(stdin), nil }})
			continue
		}
		in, err := fileInput(name)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// closable makes a reader whose Close interrupts a Read, which standard input does not do. Its
// goroutine ends with the input. If the run ends earlier, nobody waits for it: a process cannot
// stop its own read of a silent pipe.
func closable(in io.Reader) io.ReadCloser {
	out, copied := io.Pipe()
	go func() {
		_, err := io.Copy(copied, in)
		copied.CloseWithError(err)
	}()
	return out
}

func fileInput(name string) (input, error) {
	info, err := os.Stat(name)
	if err != nil {
		return input{}, cli.Unreadable("FILE", name, err)
	}
	if info.IsDir() {
		return input{}, fmt.Errorf("%s is a directory: name the files in it", name)
	}
	in := input{name: name, open: func() (io.ReadCloser, error) { return os.Open(name) }}
	if !info.Mode().IsRegular() {
		return in, nil // opening a pipe and closing it again would end its writer
	}
	f, err := os.Open(name)
	if err != nil {
		return input{}, cli.Unreadable("FILE", name, err)
	}
	in.size, in.sized = info.Size(), true
	return in, f.Close()
}

// totalSize is in bytes; 0 when the size of any input is unknown.
func totalSize(inputs []input) int64 {
	var total int64
	for _, in := range inputs {
		if !in.sized {
			return 0
		}
		total += in.size
	}
	return total
}

const (
	maxLine    = 1 << 20                // bytes of one line (cmd/registry/CONTRACT.md#commands)
	inputPause = 100 * time.Millisecond // after which a line that came through a pipe is sent
	linesAhead = 16                     // lines read ahead: bounds what waits in memory
)

// line is one checked line of the input. Blank lines never become one.
type line struct {
	file    string
	number  int    // from 1, within its file
	size    int    // bytes in the file, line break included
	payload []byte // the event as written, without surrounding white space
	message publish.Message
	err     error // why it must not be sent
}

// position is where to find the line, as compilers write it.
func (l *line) position() string { return fmt.Sprintf("%s:%d", l.file, l.number) }

// ofEvent names the event of a bad line by its id, so that it is found in what it was made of; empty if
// the line has none.
func (l *line) ofEvent() string {
	var e struct{ ID string }
	if json.Unmarshal(l.payload, &e) != nil || e.ID == "" || len(e.ID) > 256 {
		return ""
	}
	return fmt.Sprintf(" (event %q)", e.ID)
}

// eachLine reads the inputs in order and calls fn with one line after another, from one goroutine,
// while another reads and checks the next ones. While it waits for more, as for a pipe, it calls
// paused from there every inputPause. It ends with the first error of either, a reading error, or ctx,
// and leaves no goroutine.
func eachLine(ctx context.Context, inputs []input, fn func(*line) error, paused func() error) error {
	group, ctx := errgroup.WithContext(ctx)
	lines := make(chan *line, linesAhead)
	group.Go(func() error {
		defer close(lines)
		return readInputs(ctx, inputs, lines)
	})
	group.Go(func() error { return consume(ctx, lines, fn, paused) })
	return group.Wait()
}

func consume(ctx context.Context, lines <-chan *line, fn func(*line) error, paused func() error) error {
	pause := time.NewTicker(inputPause)
	defer pause.Stop()
	for {
		var err error
		select {
		case l, more := <-lines:
			if !more {
				return ctx.Err()
			}
			err = fn(l)
		case <-pause.C:
			if len(lines) < linesAhead/2 { // else the input is faster than the stream, and batches are to be full
				err = paused()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// readInputs sends the lines of the inputs.
func readInputs(ctx context.Context, inputs []input, to chan<- *line) error {
	for _, in := range inputs {
		r, err := in.open()
		if err != nil {
			return err
		}
		// A read that waits for a pipe ends with the run.
		stop := context.AfterFunc(ctx, func() { _ = r.Close() })
		if err = readLines(ctx, in.name, r, to); ctx.Err() != nil {
			err = ctx.Err() // not that the input was closed
		}
		stop()
		if closeErr := r.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readLines(ctx context.Context, file string, r io.Reader, to chan<- *line) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for number := 1; ; number++ {
		l, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", file, err)
		}
		if number == 1 {
			l.payload = bytes.TrimPrefix(l.payload, []byte("\ufeff")) // a byte order mark
		}
		if (len(l.payload) > 0 || l.err != nil) && !recovery.IsTombstonesEnd(l.payload) {
			l.file, l.number = file, number
			if l.err == nil {
				l.message, l.err = publish.ParseMessage(l.payload)
			}
			select {
			case to <- &l:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err != nil {
			return ctx.Err()
		}
	}
}

// readLine reads one line without ever holding more than maxLine of it. At the end of the
// input it returns what is left together with io.EOF.
func readLine(in *bufio.Reader) (line, error) {
	var l line
	var text []byte
	for {
		part, err := in.ReadSlice('\n')
		l.size += len(part)
		if l.size <= maxLine+1 { // the line break is not counted
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if l.size-lineBreak(part) > maxLine {
			l.err = errors.New("line longer than 1 MiB")
			return l, err
		}
		l.payload = bytes.TrimSpace(text)
		return l, err
	}
}

func lineBreak(part []byte) int {
	if bytes.HasSuffix(part, []byte("\n")) {
		return 1
	}
	return 0
}
