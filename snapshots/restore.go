package snapshots

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	bolt "go.etcd.io/bbolt"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel/fault"
)

// ErrExists means that there is already a store at the path of a restore.
var ErrExists = errors.New("there is a read model already")

// RestoreConfig configures Restore.
type RestoreConfig struct {
	// Path is the store's file. Required. Its directory must exist, and the caller must hold its
	// lock (LockDir).
	Path string

	// Replace keeps an existing store as registry.db.replaced-<UTC time>. Without it, if there is a
	// store, Restore reads nothing and the error matches ErrExists.
	Replace bool

	// Accept may refuse the archive by its manifest, before anything is written. If nil, any
	// archive of this program's projection version is accepted.
	Accept func(Manifest) error
}

// Restore makes the store at cfg.Path from the archive in r: it unpacks and verifies it in a file
// next to the path, gives it a new data-set id, syncs it and renames it. At every moment the path
// has the old store, if there was one, or the whole new one. aside is the new name of an old store,
// or empty. After an error the old store is in its place, unless the error matches ErrNotSynced.
func Restore(ctx context.Context, r io.Reader, cfg RestoreConfig) (m Manifest, aside string, err error) {
	if _, err := os.Lstat(cfg.Path); err == nil && !cfg.Replace {
		return Manifest{}, "", fmt.Errorf("%s: %w", cfg.Path, ErrExists)
	}
	temporary := cfg.Path + restoringSuffix
	if err := removeIfThere(temporary); err != nil {
		return Manifest{}, "", err
	}
	m, err = unpack(ctx, r, temporary, func(m Manifest) error {
		err := current(m.Projection)
		if err == nil && cfg.Accept != nil {
			err = cfg.Accept(m)
		}
		return err
	})
	if err != nil {
		return m, "", err
	}
	if err = failpoint.Hit("restore/unpacked"); err == nil {
		err = renewDataSet(temporary)
	}
	if err == nil {
		aside, err = install(temporary, cfg.Path)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return m, aside, err
}

// Unpack reads an archive from r, writes its store to path, which must not exist, and verifies it.
// It trusts nothing in the archive's description, and writes no more bytes than the manifest says.
// After an error there is no file at path.
func Unpack(ctx context.Context, r io.Reader, path string) (Manifest, error) {
	return unpack(ctx, r, path, nil)
}

func unpack(ctx context.Context, r io.Reader, path string, accept func(Manifest) error) (Manifest, error) {
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
	if err := checkSpace(filepath.Dir(path), m.Size); err != nil {
		return m, err
	}
	if err := unpackFile(ctx, in, path, m); err != nil {
		return m, err
	}
	if err := m.verify(ctx, path); err != nil {
		os.Remove(path)
		return m, err
	}
	return m, nil
}

func unpackFile(ctx context.Context, in *bufio.Reader, path string, m Manifest) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(path)
		}
	}()
	return unpackTo(throttledWriter{ctx, &throttle{}, f}, in, m)
}

// unpackTo unpacks everything after the header and compares it with the manifest.
func unpackTo(to io.Writer, in *bufio.Reader, m Manifest) error {
	packed := &io.LimitedReader{R: in, N: m.Packed}
	from, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(packWindow))
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer from.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, m.Size+1))
	switch {
	case err != nil:
		return fmt.Errorf("unpack: %w", err)
	case n != m.Size:
		return fmt.Errorf("unpack: the archive does not hold the %d bytes of the manifest", m.Size)
	case packed.N != 0:
		return errors.New("unpack: the archive is cut short")
	}
	if _, err := in.ReadByte(); err == nil {
		return errors.New("unpack: data after the end of the archive")
	} else if !errors.Is(err, io.EOF) {
		return err // of a source that verifies itself at its end
	}
	if hex.EncodeToString(sum.Sum(nil)) != m.SHA256 {
		return errors.New("unpack: checksum does not match")
	}
	return nil
}

// verify compares the file at path with the manifest, and every record in it with its event's data.
func (m Manifest) verify(ctx context.Context, path string) error {
	found, err := fileMeta(path)
	if err != nil {
		return err
	}
	if err := m.describes(found); err != nil {
		return err
	}
	shown, err := verifyFile(ctx, path, found, ArchiveConfig{})
	if err == nil && !maps.Equal(shown, m.Entries) {
		err = errors.New("manifest does not match the file: the listed entries differ")
	}
	return err
}

// renewDataSet gives the store at path a new data-set id and syncs the whole file.
func renewDataSet(path string) error {
	db, _, err := openFile(path)
	if err != nil {
		return err
	}
	err = fault.Catch(func() error {
		return db.Update(func(tx *bolt.Tx) error {
			m, err := readMeta(tx)
			if err != nil {
				return err
			}
			m.DataSet = newDataSet()
			return m.write(tx)
		})
	})
	return errors.Join(err, db.Sync(), db.Close())
}

// ErrNotSynced means that the new store is in its place, but may disappear in a power failure.
var ErrNotSynced = errors.New("the directory cannot be synced, so a power failure may bring back what was there before")

// install renames the file at from to path. An existing file at path keeps a second name, aside.
func install(from, path string) (aside string, err error) {
	if _, err := os.Lstat(path); err == nil {
		if aside, err = keepAside(path); err != nil {
			return "", err
		}
	}
	err = cmp.Or(removeIfThere(path+loadingSuffix), failpoint.Hit("restore/before-rename")) // the mark belongs to the old one
	if err == nil {
		err = os.Rename(from, path)
	}
	if err != nil {
		if aside != "" {
			err = errors.Join(err, os.Remove(aside))
		}
		return "", err
	}
	if err := cmp.Or(failpoint.Hit("restore/renamed"), syncDir(filepath.Dir(path))); err != nil {
		return aside, fmt.Errorf("%w: %w", ErrNotSynced, err)
	}
	return aside, nil
}
