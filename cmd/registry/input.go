package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/publish"
)

// input is one FILE argument of publish.
type input struct {
	name  string // as messages show it
	size  int64  // bytes, if sized; that of a pipe is unknown
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
	chunkLines = 256                    // lines decoded by one worker at a time
	chunkBytes = 256 << 10              // or this many bytes of them
	inputPause = 100 * time.Millisecond // after which a line that came through a pipe is sent
	chunksOut  = 16                     // chunks read ahead: bounds what waits in memory to 16 × (256 KiB + a line)
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

// place is where to find the line, as compilers write it.
func (l *line) place() string { return fmt.Sprintf("%s:%d", l.file, l.number) }

// chunk is a run of lines, decoded by one worker. They may be read once done is closed.
type chunk struct {
	lines []line
	done  chan struct{}
}

func newChunk() *chunk { return &chunk{done: make(chan struct{})} }

// decode checks every line of the chunk.
func (c *chunk) decode() {
	for i := range c.lines {
		if l := &c.lines[i]; l.err == nil {
			l.message, l.err = publish.ParseMessage(l.payload)
		}
	}
	close(c.done)
}

// eachLine reads the inputs in order, decodes their lines on every core, and calls fn with one line
// after another, in input order, from one goroutine. While it waits for more, as for a pipe, it calls
// paused from there every inputPause. It ends with the first error of either, a reading error, or ctx, and
// leaves no goroutine.
func eachLine(ctx context.Context, inputs []input, fn func(*line) error, paused func() error) error {
	group, ctx := errgroup.WithContext(ctx)
	ordered := make(chan *chunk, chunksOut)
	work := make(chan *chunk, chunksOut)
	group.Go(func() error {
		defer close(ordered)
		defer close(work)
		return readInputs(ctx, inputs, func(c *chunk) error { return handOut(ctx, c, ordered, work) })
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for c := range work {
				c.decode()
			}
			return nil
		})
	}
	group.Go(func() error { return consume(ctx, ordered, fn, paused) })
	return group.Wait()
}

// handOut queues a chunk for decoding and, in reading order, for the consumer.
func handOut(ctx context.Context, c *chunk, queues ...chan<- *chunk) error {
	for _, q := range queues {
		select {
		case q <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func consume(ctx context.Context, ordered <-chan *chunk, fn func(*line) error, paused func() error) error {
	pause := time.NewTicker(inputPause)
	defer pause.Stop()
	for {
		c, err := nextChunk(ctx, ordered, pause.C, paused)
		if c == nil {
			return err
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		for i := range c.lines {
			if err := fn(&c.lines[i]); err != nil {
				return err
			}
		}
	}
}

// nextChunk waits for a chunk, and calls paused at each pause. It returns nil at the end, with ctx's
// error if that is why.
func nextChunk(ctx context.Context, ordered <-chan *chunk, pause <-chan time.Time, paused func() error) (*chunk, error) {
	select {
	case c := <-ordered: // a file never pauses: its batches are full
		return c, ctx.Err()
	default:
	}
	for {
		select {
		case c := <-ordered:
			return c, ctx.Err()
		case <-pause:
			if err := paused(); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// readInputs reads the inputs into chunks.
func readInputs(ctx context.Context, inputs []input, emit func(*chunk) error) error {
	for _, in := range inputs {
		r, err := in.open()
		if err != nil {
			return err
		}
		// A read that waits for a pipe ends with the run.
		stop := context.AfterFunc(ctx, func() { _ = r.Close() })
		if err = readLines(ctx, in.name, r, emit); ctx.Err() != nil {
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

func readLines(ctx context.Context, file string, r io.Reader, emit func(*chunk) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	c, size := newChunk(), 0
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(l.payload) > 0 || l.err != nil {
			l.file, l.number = file, number
			c.lines = append(c.lines, l)
			size += len(l.payload)
		}
		full := len(c.lines) == chunkLines || size >= chunkBytes || len(c.lines) > 0 && !lineBuffered(in)
		if last := err != nil; last || full {
			if emitErr := emit(c); emitErr != nil || last {
				return emitErr
			}
			c, size = newChunk(), 0
		}
	}
}

// lineBuffered is false when reading the next line may block.
func lineBuffered(in *bufio.Reader) bool {
	there, err := in.Peek(in.Buffered())
	return err == nil && bytes.IndexByte(there, '\n') >= 0
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
