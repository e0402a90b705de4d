package httpapi

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// compressor encodes whole bodies. Any goroutine may use it.
type compressor struct {
	zstd *zstd.Encoder // EncodeAll only, which is safe for concurrent use and starts no goroutine
	gzip sync.Pool     // of *gzip.Writer
}

// zstdWindow bounds what a reader needs to keep while decoding; no page is much larger.
const zstdWindow = 128 << 10

func newCompressor() (*compressor, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(zstdWindow), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("zstd encoder: %w", err)
	}
	return &compressor{zstd: z}, nil
}

// appendEncoded appends body in the encoding e, which is not identity.
func (c *compressor) appendEncoded(dst, body []byte, e encoding) ([]byte, error) {
	if e == zstandard {
		return c.zstd.EncodeAll(body, dst), nil
	}
	out := bytes.NewBuffer(dst)
	w, err := c.gzipWriter(out)
	if err != nil {
		return nil, err
	}
	defer c.gzip.Put(w)
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return out.Bytes(), nil
}

func (c *compressor) gzipWriter(out *bytes.Buffer) (*gzip.Writer, error) {
	if w, ok := c.gzip.Get().(*gzip.Writer); ok {
		w.Reset(out)
		return w, nil
	}
	w, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return w, nil
}
