package snapshots

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/klauspost/compress/zstd"
	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// ArchiveConfig configures Archive and Export: where they work, and how fast.
type ArchiveConfig struct {
	// TempDir is the directory of the temporary file that the archive is made in. If empty, it is
	// the system's temporary directory. The file is removed after use; after a crash, the caller
	// must do that.
	TempDir string

	// Rest is called after each stretch of work, with its length, and sleeps so that queries get
	// the CPUs. If nil, the work never rests.
	Rest func(ctx context.Context, worked time.Duration)

	// Workers is the number of goroutines that decode. 0 means GOMAXPROCS.
	Workers int
}

func (c ArchiveConfig) workers() int { return cmp.Or(c.Workers, runtime.GOMAXPROCS(0)) }

// temporary makes an empty file.
func (c ArchiveConfig) temporary() (*os.File, error) {
	if c.TempDir != "" {
		if err := os.MkdirAll(c.TempDir, 0o700); err != nil {
			return nil, err
		}
	}
	return os.CreateTemp(c.TempDir, "snapshot-*")
}

// Archive is a snapshot in a temporary file, verified and ready to send. One goroutine at a time
// may use it.
type Archive struct {
	Manifest Manifest

	file *os.File
	size int64
}

// Archive makes an archive of the store's current content, while the store goes on saving. It
// verifies the archive by reading it. The caller ends the archive with Close. The error is the
// system's, the store's, or that of ctx.
func (s *Store) Archive(ctx context.Context, cfg ArchiveConfig) (_ *Archive, err error) {
	f, err := cfg.temporary()
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	a := &Archive{file: f}
	if err := s.fillArchive(ctx, a, cfg); err != nil {
		_ = a.Close() // the first error counts
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return a, nil
}

func (s *Store) fillArchive(ctx context.Context, a *Archive, cfg ArchiveConfig) (err error) {
	if err := s.writeArchive(ctx, a.file, &throttle{rest: cfg.Rest}); err != nil {
		return err
	}
	if err := failpoint.Hit("snapshot/packed"); err != nil {
		return err
	}
	if a.size, err = a.file.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	r, err := NewReader(a.Reader())
	if err != nil {
		return err
	}
	a.Manifest = r.Manifest
	return r.read(ctx, cfg, nil)
}

// Size returns the archive's length in bytes.
func (a *Archive) Size() int64 { return a.size }

// Reader returns a reader of the archive, from its beginning.
func (a *Archive) Reader() io.Reader { return io.NewSectionReader(a.file, 0, a.size) }

// Close removes the temporary file.
func (a *Archive) Close() error { return errors.Join(a.file.Close(), os.Remove(a.file.Name())) }

// writeArchive writes an archive of the store's current content, from one read transaction.
func (s *Store) writeArchive(ctx context.Context, to *os.File, pace *throttle) error {
	tx, err := s.beginRead()
	if err != nil {
		return err
	}
	defer func() {
		_ = tx.Rollback() // a reader's rollback cannot fail
		s.readers.Add(-1)
	}()
	records := func(visit func(pair) error) error {
		return walk(tx)(func(p pair) error {
			if err := pace.wait(ctx); err != nil {
				return err
			}
			return visit(p)
		})
	}
	return fault.Catch(func() error {
		saved, err := readMeta(tx)
		if err != nil {
			return err
		}
		m, err := describe(saved, records)
		if err == nil {
			err = checkSpace(filepath.Dir(to.Name()), m.Size/packsTo)
		}
		if err != nil {
			return err
		}
		return m.write(to, records)
	})
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

// describe returns the manifest of a store with the meta record saved.
func describe(saved meta, records source) (Manifest, error) {
	m := manifestOf(saved, time.Now())
	l := &loader{rerender: saved.Render != readmodel.RenderVersion}
	renderer := readmodel.NewRenderer()
	var one batch
	return m, records(func(p pair) error {
		m.Size += int64(len(p.key) + len(p.stored))
		if p.table.kind != events.KindEntry || p.table.tombstones {
			return nil
		}
		if p.table.list.Trusted() { // not all of them are shown
			one.records = one.records[:0]
			if err := l.record(renderer, p, string(p.key), &one); err != nil || !one.records[0].Shown() {
				return err
			}
		}
		m.Entries[string(p.table.list)]++
		return nil
	})
}

// packsTo is how much shorter archives are than their records, at least: five to eight times were seen.
const packsTo = 4

// packWindow bounds the memory of packing and unpacking, in bytes.
const packWindow = 4 << 20

// endOfRecords takes the place of a table's number after the last record.
const endOfRecords = 0

// write writes an archive: one zstd frame of the header, the records, and their end. A record is the
// number of its table, the lengths of its key and of its stored value, and the two. The end is
// endOfRecords, how many records there are, and the digest of the content.
func (m Manifest) write(to io.Writer, records source) error {
	packed, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow),
		zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	b, err := m.header()
	if err != nil {
		return err
	}
	n := uint64(0)
	err = records(func(p pair) error {
		if len(p.key) > maxKey || len(p.stored) > maxStored {
			return fmt.Errorf("%s: %s: too long for an archive", p.table.name, p.table.record(p.key))
		}
		n++
		b = append(b, p.table.number)
		b = binary.AppendUvarint(b, uint64(len(p.key)))
		b = binary.AppendUvarint(b, uint64(len(p.stored)))
		b = append(b, p.key...)
		if _, err := packed.Write(b); err != nil {
			return err
		}
		b = b[:0]
		_, err := packed.Write(p.stored)
		return err
	})
	if err != nil {
		return err
	}
	b = binary.AppendUvarint(append(b, endOfRecords), n)
	_, err = packed.Write(append(b, m.Digest...))
	return cmp.Or(err, packed.Close())
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
