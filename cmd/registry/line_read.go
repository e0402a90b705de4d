package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// readInputs cuts the inputs into chunks.
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

// lineBuffered is false when the next line may have to be waited for.
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
