package snapshots

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"example.org/registry/events/failpoint"
)

// packWindow bounds the memory that packing and unpacking take, in bytes.
const packWindow = 4 << 20

// Archive is a snapshot in a temporary file: proved, and ready to be sent anywhere. One goroutine at a
// time may use it.
type Archive struct {
	Manifest Manifest

	header []byte
	packed *os.File
}

// Archive makes an archive of what the store holds at this moment, while it goes on saving, and proves it:
// every record of the copy has been read, and what was packed unpacks to it. The caller
// ends it with Close. The error is that of the system, of the store, or of ctx.
func (s *Store) Archive(ctx context.Context, w Work) (*Archive, error) {
	path, m, err := s.copy(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	defer os.Remove(path)
	a, err := pack(ctx, path, m, w)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return a, nil
}

// pack makes an archive of the file at path.
func pack(ctx context.Context, path string, m Manifest, w Work) (_ *Archive, err error) {
	f, err := w.temporary("snapshot-*.packed")
	if err != nil {
		return nil, err
	}
	made := &Archive{Manifest: m, packed: f}
	defer func() {
		if err != nil {
			_ = made.Close() // the first error counts
		}
	}()
	if err := made.fill(ctx, path, w); err != nil {
		return nil, err
	}
	if err := failpoint.Hit("snapshot/packed"); err != nil {
		return nil, err
	}
	if made.header, err = made.Manifest.header(); err != nil {
		return nil, err
	}
	if err := made.unpacks(ctx, w); err != nil {
		return nil, err
	}
	return made, nil
}

// fill packs the file at path, and takes down its length and checksum.
func (a *Archive) fill(ctx context.Context, path string, w Work) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	to, err := zstd.NewWriter(a.packed, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow),
		zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(pacedWriter{ctx, &pacer{rest: w.Rest}, io.MultiWriter(sum, to)}, in)
	if err := cmp.Or(err, to.Close()); err != nil {
		return err
	}
	packed, err := a.packed.Seek(0, io.SeekCurrent)
	a.Manifest.Size, a.Manifest.Packed, a.Manifest.SHA256 = n, packed, hex.EncodeToString(sum.Sum(nil))
	return err
}

// unpacks reads the archive back.
func (a *Archive) unpacks(ctx context.Context, w Work) error {
	sum := sha256.New()
	r := bufio.NewReader(a.Reader())
	if _, err := ReadManifest(r); err != nil {
		return err
	}
	return unpackTo(pacedWriter{ctx, &pacer{rest: w.Rest}, sum}, sum, r, a.Manifest)
}

// Size is the archive's length in bytes.
func (a *Archive) Size() int64 { return int64(len(a.header)) + a.Manifest.Packed }

// Reader reads the archive from its beginning.
func (a *Archive) Reader() io.Reader {
	return io.MultiReader(bytes.NewReader(a.header), io.NewSectionReader(a.packed, 0, a.Manifest.Packed))
}

// Close removes the temporary file.
func (a *Archive) Close() error {
	return errors.Join(a.packed.Close(), os.Remove(a.packed.Name()))
}
