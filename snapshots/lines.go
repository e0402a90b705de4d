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

// Unpack returns the text of r, unpacked if it is packed with gzip or zstd, and without a byte order mark.
func Unpack(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return nil, errors.New("the file is UTF-16, as PowerShell's > writes it; save it as UTF-8")
	}

	unpacked, err := newUnpacker(in, head)
	if err != nil {
		return nil, err
	}

	text := bufio.NewReaderSize(unpacked, 64<<10)
	const mark = "\ufeff"
	start, _ := text.Peek(len(mark)) // the caller's first read returns the same error
	if string(start) == mark {
		_, _ = text.Discard(len(mark))
	}
	return text, nil
}

// newUnpacker returns a reader for the packing that the first bytes, head, tell.
func newUnpacker(in io.Reader, head []byte) (io.Reader, error) {
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		return gzip.NewReader(in)
	}
	if bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) {
		// Concurrency 1 unpacks on the caller's goroutine, so that none is left running.
		return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}
	return in, nil
}

// ErrLongLine is the error of a line that is longer than the limit.
var ErrLongLine = errors.New("line too long")

// ReadLines calls visit with the number and the text of each line that is not blank, until visit returns
// an error. For a line longer than limit bytes, visit gets ErrLongLine instead of the text. The text is
// valid only during the call.
func ReadLines(r io.Reader, limit int, visit func(number int, text []byte, err error) error) error {
	in := bufio.NewReaderSize(r, limit+len("\r\n"))
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		text := bytes.TrimRight(line, "\r\n")
		isLong := len(text) > limit

		// Skip the rest of a line that is longer than the buffer.
		for errors.Is(err, bufio.ErrBufferFull) {
			isLong = true
			_, err = in.ReadSlice('\n')
		}

		var visitErr error
		if isLong {
			visitErr = visit(number, nil, fmt.Errorf("%w: more than %d KiB", ErrLongLine, limit>>10))
		} else if text = bytes.TrimSpace(text); len(text) > 0 {
			visitErr = visit(number, text, nil)
		}

		if visitErr != nil {
			return visitErr
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
