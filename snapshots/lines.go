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

// Unpack returns the text of r without a byte order mark, and unpacks it if it is packed with gzip or zstd.
func Unpack(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}

	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return nil, errors.New("the file is UTF-16, as PowerShell's > writes it; save it as UTF-8")
	}

	// The first bytes tell how the text is packed.
	var unpacked io.Reader = in
	err = nil
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		unpacked, err = gzip.NewReader(in)
	} else if bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) {
		// Concurrency 1 unpacks on this goroutine, so that nothing is left running.
		unpacked, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}
	if err != nil {
		return nil, err
	}

	text := bufio.NewReaderSize(unpacked, 64<<10)
	const mark = "\ufeff"
	if head, _ := text.Peek(len(mark)); string(head) == mark { // the caller's first read returns an error again
		_, _ = text.Discard(len(mark))
	}
	return text, nil
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

		// Pass over the rest of a long line.
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
