package snapshots

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory of unpacking, in bytes.
const maxWindow = 64 << 20

// Unpack returns the text of r, which may be packed with gzip or zstd, without a byte order mark.
func Unpack(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	startsWith := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }

	var text io.Reader = in
	switch {
	case startsWith("\x1f\x8b"):
		text, err = gzip.NewReader(in)
	case startsWith("\x28\xb5\x2f\xfd"):
		// Concurrency 1 unpacks on this goroutine, so that nothing is left running.
		text, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	case startsWith("\xff\xfe"), startsWith("\xfe\xff"):
		err = errors.New("the file is UTF-16, as PowerShell's > writes it; save it as UTF-8")
	case startsWith("PK\x03\x04"):
		err = errors.New("the file is a ZIP archive; unpack it")
	default:
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return withoutMark(text), nil
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

// ErrLongLine is the error of a line that is longer than the limit.
var ErrLongLine = errors.New("line too long")

// ReadLines calls visit with the number and the text of each line that is not blank, until it returns
// an error. A line longer than limit bytes has the error ErrLongLine instead of its text. The text is
// valid during the call.
func ReadLines(r io.Reader, limit int, visit func(number int, text []byte, err error) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for number := 1; ; number++ {
		text, long, err := readLine(in, line[:0], limit)
		if line = text; len(bytes.TrimSpace(text)) > 0 || long {
			var lineErr error
			if long {
				text, lineErr = nil, fmt.Errorf("%w: more than %d KiB", ErrLongLine, limit>>10)
			}
			if err := visit(number, bytes.TrimSpace(text), lineErr); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// readLine appends a line to line. It keeps no more than limit bytes of it.
func readLine(in *bufio.Reader, line []byte, limit int) (_ []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(bytes.TrimRight(part, "\r\n")) > limit {
			long = true
		}
		if !long {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}
