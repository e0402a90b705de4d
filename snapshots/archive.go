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
	"path/filepath"
	"runtime"
	"time"

	"github.com/klauspost/compress/zstd"
	bolt "go.etcd.io/bbolt"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel/fault"
)

// ArchiveConfig configures Archive and Export: where they work, and how fast.
type ArchiveConfig struct {
	// TempDir is the directory of temporary files: a copy of the store, and its packed form. If
	// empty, it is the system's temporary directory. Each file is removed after use; after a crash,
	// the caller must do that.
	TempDir string

	// Rest is called after each stretch of work, with its length, and sleeps so that queries get
	// the CPUs. If nil, the work never rests.
	Rest func(ctx context.Context, worked time.Duration)

	// Workers is the number of goroutines that decode. 0 means GOMAXPROCS.
	Workers int
}

func (c ArchiveConfig) workers() int { return cmp.Or(c.Workers, runtime.GOMAXPROCS(0)) }

// temporary makes an empty file.
func (c ArchiveConfig) temporary(pattern string) (*os.File, error) {
	if c.TempDir != "" {
		if err := os.MkdirAll(c.TempDir, 0o700); err != nil {
			return nil, err
		}
	}
	return os.CreateTemp(c.TempDir, pattern)
}

// Archive is a snapshot in a temporary file, verified and ready to send. One goroutine at a time
// may use it.
type Archive struct {
	Manifest Manifest

	header []byte
	packed *os.File
}

// Archive makes an archive of the store's current content, while the store goes on saving. It
// verifies the archive: it reads every record of the copy, and unpacks the result. The caller ends
// the archive with Close. The error is the system's, the store's, or that of ctx.
func (s *Store) Archive(ctx context.Context, cfg ArchiveConfig) (*Archive, error) {
	path, m, err := s.copy(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	defer os.Remove(path)
	a, err := pack(ctx, path, m, cfg)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return a, nil
}

// Size returns the archive's length in bytes.
func (a *Archive) Size() int64 { return int64(len(a.header)) + a.Manifest.Packed }

// Reader returns a reader of the archive, from its beginning.
func (a *Archive) Reader() io.Reader {
	return io.MultiReader(bytes.NewReader(a.header), io.NewSectionReader(a.packed, 0, a.Manifest.Packed))
}

// Close removes the temporary file.
func (a *Archive) Close() error {
	return errors.Join(a.packed.Close(), os.Remove(a.packed.Name()))
}

// copy copies the store's current content into a temporary file and verifies the copy, while the
// store goes on saving. The caller removes the file.
func (s *Store) copy(ctx context.Context, cfg ArchiveConfig) (path string, m Manifest, err error) {
	f, err := cfg.temporary("store-*.db")
	if err != nil {
		return "", Manifest{}, err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := f.Close(); err != nil {
		return "", Manifest{}, err
	}
	saved, err := s.copyTo(ctx, f.Name(), &throttle{rest: cfg.Rest})
	if err != nil {
		return "", Manifest{}, err
	}
	if err := failpoint.Hit("snapshot/copied"); err != nil {
		return "", Manifest{}, err
	}
	m = manifestOf(saved, time.Now())
	m.Entries, err = verifyFile(ctx, f.Name(), saved, cfg)
	return f.Name(), m, err
}

// copyTo writes the records of the store into the empty file at path, from one read transaction.
func (s *Store) copyTo(ctx context.Context, path string, pace *throttle) (meta, error) {
	tx, err := s.beginRead()
	if err != nil {
		return meta{}, err
	}
	defer func() {
		_ = tx.Rollback() // a reader's rollback cannot fail
		s.readers.Add(-1)
	}()
	return copyRecords(ctx, tx, path, pace)
}

// copyRecords writes the records that tx sees into the file at path, which is empty or missing. It
// does not copy pages (bbolt's WriteTo): free pages still hold deleted values, and snapshots must
// not carry delisted entries. m is the meta record.
func copyRecords(ctx context.Context, tx *bolt.Tx, path string, pace *throttle) (m meta, err error) {
	if err := fault.Catch(func() error { m, err = readMeta(tx); return err }); err != nil {
		return meta{}, err
	}
	if err := checkSpace(filepath.Dir(path), tx.Size()); err != nil {
		return meta{}, err
	}
	to, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout, NoStatistics: true, NoSync: true})
	if err != nil {
		return meta{}, err
	}
	err = fault.Catch(func() error {
		err := copyBucket(ctx, to, []byte(metaBucket), tx.Bucket([]byte(metaBucket)), pace)
		for _, t := range tables() {
			from, missing := t.bucket(tx)
			if err = cmp.Or(err, missing); err == nil {
				err = copyBucket(ctx, to, []byte(t.name), from, pace)
			}
		}
		return err
	})
	return m, cmp.Or(ctx.Err(), err, to.Close())
}

// beginRead opens a read transaction. Until it ends, Close waits, and a Save after a failed Save
// fails.
func (s *Store) beginRead() (*bolt.Tx, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return nil, err
	}
	tx, err := s.db.Begin(false)
	if err == nil {
		s.readers.Add(1)
	}
	return tx, err
}

// copyBatch is how much one transaction copies, in bytes.
const copyBatch = 4 << 20

// copyBucket copies the pairs of from, in their order, into the bucket with this name.
func copyBucket(ctx context.Context, to *bolt.DB, name []byte, from *bolt.Bucket, pace *throttle) error {
	c := from.Cursor()
	k, v := c.First()
	for first := true; first || k != nil; first = false {
		err := to.Update(func(tx *bolt.Tx) error {
			into, err := tx.CreateBucketIfNotExists(name)
			if err != nil {
				return err
			}
			into.FillPercent = fullPages // the keys come in order
			for n := 0; k != nil && n < copyBatch; k, v = c.Next() {
				n += len(k) + len(v)
				if err := cmp.Or(pace.wait(ctx), into.Put(k, v)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// packWindow bounds the memory of packing and unpacking, in bytes.
const packWindow = 4 << 20

// pack makes an archive of the file at path. m describes the file, except for its length and
// checksum.
func pack(ctx context.Context, path string, m Manifest, cfg ArchiveConfig) (_ *Archive, err error) {
	f, err := cfg.temporary("snapshot-*.packed")
	if err != nil {
		return nil, err
	}
	a := &Archive{Manifest: m, packed: f}
	defer func() {
		if err != nil {
			_ = a.Close() // the first error counts
		}
	}()
	if err := a.fill(ctx, path, &throttle{rest: cfg.Rest}); err != nil {
		return nil, err
	}
	if err := failpoint.Hit("snapshot/packed"); err != nil {
		return nil, err
	}
	if a.header, err = a.Manifest.header(); err != nil {
		return nil, err
	}
	if err := a.verify(ctx, &throttle{rest: cfg.Rest}); err != nil {
		return nil, err
	}
	return a, nil
}

// fill packs the file at path and records its length and checksum.
func (a *Archive) fill(ctx context.Context, path string, pace *throttle) error {
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
	n, err := io.Copy(throttledWriter{ctx, pace, io.MultiWriter(sum, to)}, in)
	if err := cmp.Or(err, to.Close()); err != nil {
		return err
	}
	packed, err := a.packed.Seek(0, io.SeekCurrent)
	a.Manifest.Size, a.Manifest.Packed, a.Manifest.SHA256 = n, packed, hex.EncodeToString(sum.Sum(nil))
	return err
}

// verify reads the archive back.
func (a *Archive) verify(ctx context.Context, pace *throttle) error {
	r := bufio.NewReader(a.Reader())
	if _, err := ReadManifest(r); err != nil {
		return err
	}
	return unpackTo(throttledWriter{ctx, pace, io.Discard}, r, a.Manifest)
}

// workFor is how long work runs between rests.
const workFor = 5 * time.Millisecond

// throttle rests after each stretch of work. One goroutine may use it.
type throttle struct {
	rest  func(ctx context.Context, worked time.Duration) // nil means that it never rests
	since time.Time
}

// wait is called between two pieces of work, and rests if it is time. The error is that of ctx.
func (t *throttle) wait(ctx context.Context) error {
	if worked := time.Since(t.since); t.rest != nil && worked >= workFor {
		if !t.since.IsZero() {
			t.rest(ctx, min(worked, 2*workFor)) // a longer time was spent waiting for a CPU, not working
		}
		t.since = time.Now()
	}
	return ctx.Err()
}

// throttledWriter calls wait before each write, and fails once ctx ends.
type throttledWriter struct {
	ctx  context.Context
	pace *throttle
	to   io.Writer
}

func (w throttledWriter) Write(b []byte) (int, error) {
	if err := w.pace.wait(w.ctx); err != nil {
		return 0, err
	}
	return w.to.Write(b)
}
