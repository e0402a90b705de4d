package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"example.org/registry/cmd/registry/internal/cli"
)

const (
	maxLine   = 1 << 20  // bytes
	maxWindow = 64 << 20 // bytes of memory for a .zst file
)

// checkInputs checks every file before anything is sent, so that a mistyped fifth name is not found
// after four files have been published.
func checkInputs(files []string) error {
	standard := false
	for _, name := range files {
		if name == "-" {
			if standard {
				return cli.Usagef("FILE: standard input (-) is given twice")
			}
			standard = true
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return cli.Unreadable("FILE", name, err)
		}
		if info.IsDir() {
			return fmt.Errorf("%s is a directory: name the files in it", name)
		}
		if !info.Mode().IsRegular() {
			continue // opening a pipe and closing it again would end its writer
		}
		f, err := os.Open(name)
		if err != nil {
			return cli.Unreadable("FILE", name, err)
		}
		f.Close()
	}
	return nil
}

// openInput opens a file, or standard input, and unpacks it. Reading ends with ctx. The caller closes
// the result.
func openInput(ctx context.Context, name string, stdin io.Reader) (io.ReadCloser, error) {
	var file io.ReadCloser
	if name == "-" {
		file = closable(stdin)
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, cli.Unreadable("FILE", name, err)
		}
		file = f
	}

	in := &input{file: file, stop: context.AfterFunc(ctx, func() { _ = file.Close() })}
	var err error
	if in.Reader, err = unpack(file); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return in, nil
}

// input is an open file, unpacked.
type input struct {
	io.Reader
	file io.Closer
	stop func() bool
}

// Close closes the file.
func (in *input) Close() error {
	in.stop()
	return in.file.Close()
}

// closable makes a reader whose Close interrupts a Read, which standard input does not do. Its
// goroutine ends with the input. If the run ends earlier, nothing waits for it: a process cannot
// stop its own read of a silent pipe.
func closable(in io.Reader) io.ReadCloser {
	out, copied := io.Pipe()
	go func() {
		_, err := io.Copy(copied, in)
		copied.CloseWithError(err)
	}()
	return out
}

// unpack returns the text of a file that may be packed, without a byte order mark.
func unpack(file io.Reader) (io.Reader, error) {
	in := bufio.NewReader(file)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	hasPrefix := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }

	if hasPrefix("\x1f\x8b") {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		return withoutMark(unzipped), nil
	}
	if hasPrefix("\x28\xb5\x2f\xfd") {
		unzipped, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return withoutMark(unzipped), nil
	}
	if hasPrefix("\xff\xfe") || hasPrefix("\xfe\xff") {
		return nil, errors.New("the file is UTF-16, as PowerShell's > writes it; save it as UTF-8")
	}
	if hasPrefix("PK\x03\x04") {
		return nil, errors.New("the file is a ZIP archive; unpack it")
	}
	return withoutMark(in), nil
}

// withoutMark passes over a byte order mark.
func withoutMark(r io.Reader) io.Reader {
	in := bufio.NewReaderSize(r, 64<<10)
	const mark = "\ufeff"
	if head, _ := in.Peek(len(mark)); string(head) == mark { // an error comes again
		_, _ = in.Discard(len(mark))
	}
	return in
}

var errLongLine = errors.New("line longer than 1 MiB")

// readLines calls fn for each line that is not blank, without surrounding white space. A line longer
// than maxLine has no text, and errLongLine. It ends with the first error of fn, or of reading.
func readLines(r io.Reader, fn func(number int, text []byte, err error) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for number := 1; ; number++ {
		text, lineErr, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(text) > 0 || lineErr != nil {
			if err := fn(number, text, lineErr); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// readLine reads a line without ever holding more than maxLine of it. At the end of the input it returns
// what is left together with io.EOF.
func readLine(in *bufio.Reader) (text []byte, lineErr, err error) {
	size := 0
	for {
		part, err := in.ReadSlice('\n')
		size += len(part)
		if size <= maxLine+1 { // with its line break
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if size-len(part)+len(bytes.TrimSuffix(part, []byte("\n"))) > maxLine {
			return nil, errLongLine, err
		}
		return bytes.TrimSpace(text), nil, err
	}
}
