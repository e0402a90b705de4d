package snapshots

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/klauspost/compress/zstd"

	"example.org/registry/readmodel"
)

// Reader reads an archive once, by one of its methods or by Restore. It trusts nothing in it.
type Reader struct {
	// Manifest is the archive's own description. It is verified once everything has been read.
	Manifest Manifest

	in *bufio.Reader // of the unpacked archive
}

// NewReader reads the header of an archive.
func NewReader(archive io.Reader) (*Reader, error) {
	unpacked, err := zstd.NewReader(archive, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(packWindow))
	if err != nil {
		return nil, unreadable(err)
	}
	r := &Reader{in: bufio.NewReaderSize(unpacked, maxHeader)}
	first, err := r.in.ReadSlice('\n')
	if string(first) != archiveMagic {
		if err == nil || errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, io.EOF) {
			err = zstd.ErrMagicMismatch
		}
		return nil, unreadable(err)
	}
	line, err := r.in.ReadSlice('\n')
	if err != nil {
		return nil, unreadable(err)
	}
	r.Manifest, err = ParseManifest(line)
	return r, err
}

// unreadable explains an error of an archive's source.
func unreadable(err error) error {
	switch {
	case errors.Is(err, zstd.ErrMagicMismatch):
		return errors.New("not a snapshot of the registry")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("unpack: the archive is cut short")
	}
	return fmt.Errorf("unpack: %w", err)
}

// EachState calls take with every state, by list and entry id. The states are the archive's only if the
// error is nil.
func (r *Reader) EachState(ctx context.Context, take func(readmodel.State)) error {
	return r.read(ctx, ArchiveConfig{}, func(b *batch) error {
		for _, s := range b.states {
			take(s)
		}
		return nil
	})
}

// Verify reads everything. The error is nil if the archive is good.
func (r *Reader) Verify(ctx context.Context) error { return r.read(ctx, ArchiveConfig{}, nil) }

// read passes the records on and compares all of them with the manifest. It uses Rest and Workers
// of cfg.
func (r *Reader) read(ctx context.Context, cfg ArchiveConfig, take func(*batch) error) error {
	l := &loader{workers: cfg.workers(), rest: cfg.Rest, verify: true, rerender: r.Manifest.Render != readmodel.RenderVersion}
	var digest readmodel.Digest
	shown := map[string]int{}
	counts, err := l.read(ctx, r.records, func(b *batch) error {
		for i := range b.records {
			digest.Add(b.records[i].Digest())
			if b.records[i].Shown() {
				shown[string(b.records[i].Subject.List)]++
			}
		}
		if take == nil {
			return nil
		}
		return take(b)
	})
	if err != nil {
		return err
	}
	if !maps.Equal(shown, r.Manifest.Entries) {
		return errors.New("manifest does not match the records: the listed entries differ")
	}
	return meta{Counts: r.Manifest.Records, Digest: r.Manifest.Digest}.matches(counts, digest)
}

// Bounds of a record. The longest ids have 64 characters, and the longest values, those of entries,
// some times reason.MaxHTML.
const (
	maxKey    = 256
	maxStored = 4 << 20
	blockSize = 256 << 10
)

// records is the source of the archive's records. It reads no more of them than the manifest says,
// and ends after the archive's end. It allocates the bytes of pairs in blocks.
func (r *Reader) records(visit func(pair) error) error {
	of := tables()
	left, read := r.Manifest.Size, map[byte]int{}
	var block []byte
	for {
		number, err := r.in.ReadByte()
		if err != nil {
			return unreadable(err)
		}
		if number == endOfRecords {
			return r.end()
		}
		if int(number) > len(of) {
			return errors.New("a record of an unknown table")
		}
		t := &of[number-1]
		key, err := r.length(maxKey)
		if err != nil {
			return err
		}
		stored, err := r.length(maxStored)
		if err != nil {
			return err
		}
		n := key + stored
		left -= int64(n)
		if read[number]++; read[number] > r.Manifest.Records[t.name] || left < 0 {
			return fmt.Errorf("%s: more records than the manifest says", t.name)
		}
		if len(block) < n {
			block = make([]byte, max(n, blockSize))
		}
		if _, err := io.ReadFull(r.in, block[:n]); err != nil {
			return unreadable(err)
		}
		if err := visit(pair{t, block[:key:key], block[key:n:n]}); err != nil {
			return err
		}
		block = block[n:]
	}
}

// length reads a length of at most limit.
func (r *Reader) length(limit uint64) (int, error) {
	n, err := binary.ReadUvarint(r.in)
	switch {
	case err != nil:
		return 0, unreadable(err)
	case n > limit:
		return 0, fmt.Errorf("a record of %d bytes, more than %d", n, limit)
	}
	return int(n), nil
}

// end reads what follows the last record.
func (r *Reader) end() error {
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return unreadable(err)
	}
	digest := make([]byte, len(r.Manifest.Digest))
	if _, err := io.ReadFull(r.in, digest); err != nil {
		return unreadable(err)
	}
	if n != uint64(r.Manifest.RecordCount()) || string(digest) != r.Manifest.Digest {
		return errors.New("manifest does not match the end of the archive")
	}
	if _, err := r.in.ReadByte(); err == nil || errors.Is(err, zstd.ErrMagicMismatch) {
		return errors.New("unpack: data after the end of the archive")
	} else if !errors.Is(err, io.EOF) {
		return unreadable(err) // of a source that fails at its end
	}
	return nil
}
