package bucket

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/nats-io/nats.go/jetstream"
)

// Open reads the archive of an item. At its end the reader compares the length and the checksum
// with those that were put, and fails when they differ. Each Read asks the broker at most once; ctx ends
// them all.
func (b *Bucket) Open(ctx context.Context, item Item) (io.Reader, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return nil, err
	}
	if item.info.NUID == "" {
		return nil, errors.New("no chunks are named")
	}
	return &chunkReader{ctx: ctx, bucket: b, stream: s, item: item, next: 1, sum: sha256.New()}, nil
}

type chunkReader struct {
	ctx    context.Context
	bucket *Bucket
	stream jetstream.Stream
	item   Item
	next   uint64 // stream sequence to look from
	have   []byte // of the present chunk
	read   uint64
	chunks uint32
	sum    hash.Hash
	err    error
}

func (r *chunkReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(r.have) == 0 && r.err == nil {
		r.err = r.fetch()
	}
	if r.err != nil {
		return 0, r.err
	}
	n := copy(p, r.have)
	r.have = r.have[n:]
	return n, nil
}

// fetch gets the next chunk; io.EOF when all have been read and are what was put.
func (r *chunkReader) fetch() error {
	if r.chunks == r.item.info.Chunks {
		return r.end()
	}
	ctx, cancel := context.WithTimeout(r.ctx, askWithin)
	defer cancel()
	m, err := r.stream.GetMsg(ctx, r.next, jetstream.WithGetMsgSubject(chunkPrefix+r.item.info.NUID))
	if err != nil {
		err = r.bucket.explained(err, jetstream.DefaultAPIPrefix+"DIRECT.GET."+streamName)
		return fmt.Errorf("chunk %d of %d: %w", r.chunks+1, r.item.info.Chunks, err)
	}
	r.chunks++
	r.next = m.Sequence + 1
	r.read += uint64(len(m.Data))
	if r.read > r.item.info.Size {
		return fmt.Errorf("chunk %d: more than the %d bytes that were put", r.chunks, r.item.info.Size)
	}
	r.sum.Write(m.Data)
	r.have = m.Data
	if len(m.Data) == 0 {
		return fmt.Errorf("chunk %d is empty", r.chunks)
	}
	return nil
}

func (r *chunkReader) end() error {
	if r.read != r.item.info.Size {
		return fmt.Errorf("%d bytes, not the %d that were put", r.read, r.item.info.Size)
	}
	if jetstream.GetObjectDigestValue(r.sum) != r.item.info.Digest {
		return errors.New("checksum is not that of what was put")
	}
	return io.EOF
}
