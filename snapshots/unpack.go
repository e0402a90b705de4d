package snapshots

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Unpack reads an archive from r, writes the file that it holds to path, which must not exist, and proves
// it as Open would: nothing that the archive says of itself is trusted, and no more than what it
// says is written. Accept, if not nil, may refuse it by its manifest before anything is written. After
// an error there is nothing at path.
func Unpack(ctx context.Context, r io.Reader, path string, w Work, accept func(Manifest) error) (Manifest, error) {
	in := bufio.NewReaderSize(r, maxHeader)
	m, err := ReadManifest(in)
	if err != nil {
		return Manifest{}, err
	}
	if accept != nil {
		if err := accept(m); err != nil {
			return m, err
		}
	}
	if err := space(filepath.Dir(path), m.Size); err != nil {
		return m, err
	}
	if err := unpackFile(ctx, in, path, m, w); err != nil {
		return m, err
	}
	if err := m.prove(ctx, path, w); err != nil {
		os.Remove(path)
		return m, err
	}
	return m, nil
}

func unpackFile(ctx context.Context, in *bufio.Reader, path string, m Manifest, w Work) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(path)
		}
	}()
	sum := sha256.New()
	to := pacedWriter{ctx, &pacer{rest: w.Rest}, io.MultiWriter(f, sum)}
	return unpackTo(to, sum, in, m)
}

// unpackTo unpacks what follows the header, to its very end.
func unpackTo(to io.Writer, sum hash.Hash, in *bufio.Reader, m Manifest) error {
	packed := &io.LimitedReader{R: in, N: m.Packed}
	from, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(packWindow))
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer from.Close()
	n, err := io.Copy(to, io.LimitReader(from, m.Size+1))
	switch {
	case err != nil:
		return fmt.Errorf("unpack: %w", err)
	case n != m.Size:
		return fmt.Errorf("unpack: not the %d bytes of the manifest", m.Size)
	case packed.N != 0:
		return errors.New("unpack: the archive is cut short")
	}
	if _, err := in.ReadByte(); err == nil {
		return errors.New("unpack: something follows the archive")
	} else if !errors.Is(err, io.EOF) {
		return err // of a source that proves itself at its end
	}
	if hex.EncodeToString(sum.Sum(nil)) != m.SHA256 {
		return errors.New("unpack: checksum does not match")
	}
	return nil
}
