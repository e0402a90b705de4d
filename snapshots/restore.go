package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

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

	// Join makes a store that the stream has to complete: what the directory has held is still owed.
	// Without it, an operator restores, and the archive decides what is owed.
	Join bool
}

// Restore makes the store at cfg.Path from an archive, of this program's projection version only: it
// writes the records to a new file next to the path while it verifies them, syncs it and renames it.
// At every moment the path has the old store, if there was one, or the whole new one. aside is the
// new name of an old store, or empty. After an error the old store is in its place, unless the error
// matches ErrNotSynced.
func Restore(ctx context.Context, r *Reader, cfg RestoreConfig) (aside string, err error) {
	if _, err := os.Lstat(cfg.Path); err == nil && !cfg.Replace {
		return "", fmt.Errorf("%s: %w", cfg.Path, ErrExists)
	}
	temporary := cfg.Path + restoringSuffix
	if err := cmp.Or(current(r.Manifest.Projection), removeIfThere(temporary), checkSpace(filepath.Dir(temporary), r.Manifest.storeSize())); err != nil {
		return "", err
	}
	m := r.storeMeta()
	m.Checkpoint.Complete = m.Checkpoint.Complete && !cfg.Join
	if err = r.writeStore(ctx, temporary, m); err == nil {
		err = failpoint.Hit("restore/written")
	}
	if err == nil && m.Checkpoint.Complete {
		err = writeKnown(knownPath(cfg.Path), m)
	}
	if err == nil {
		aside, err = install(temporary, cfg.Path)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return aside, err
}

// storeMeta returns the meta record of a store of the archive's records, with a data-set id of its
// own.
func (r *Reader) storeMeta() meta {
	m := newMeta()
	m.Checkpoint, m.Render, m.Digest = r.Manifest.Checkpoint, r.Manifest.Render, r.Manifest.Digest
	maps.Copy(m.Counts, r.Manifest.Records)
	return m
}

// writeStore writes the archive's records into a new store at path, and syncs the whole file.
func (r *Reader) writeStore(ctx context.Context, path string, m meta) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout, NoStatistics: true, NoSync: true, NoGrowSync: true,
		FreelistType: bolt.FreelistMapType, InitialMmapSize: initialMmap})
	if err != nil {
		return err
	}
	err = fault.Catch(func() error {
		to := storeWriter{db: db}
		defer to.end()
		err := r.read(ctx, ArchiveConfig{}, func(b *batch) error { return to.put(b.pairs) })
		if err != nil {
			return err
		}
		if err := to.begin(); err != nil { // for the tables, if there is no record
			return err
		}
		if err := m.write(to.tx); err != nil {
			return err
		}
		return to.commit()
	})
	if err == nil {
		err = db.Sync()
	}
	return errors.Join(err, db.Close())
}

// restorePart is how much one transaction of a restore writes, in bytes.
const restorePart = 16 << 20

// storeWriter writes pairs that come in order into a new file.
type storeWriter struct {
	db      *bolt.DB
	tx      *bolt.Tx       // nil between two transactions
	buckets []*bolt.Bucket // of tx, by number of their tables, from 1
	bytes   int            // that tx has written
}

// begin begins a transaction, unless there is one.
func (w *storeWriter) begin() (err error) {
	if w.tx != nil {
		return nil
	}
	if w.tx, err = w.db.Begin(true); err != nil {
		return err
	}
	w.buckets, w.bytes = []*bolt.Bucket{nil}, 0
	for _, t := range tables() {
		b, err := w.tx.CreateBucketIfNotExists([]byte(t.name))
		if err != nil {
			return err
		}
		b.FillPercent = fullPages // the keys come in order
		w.buckets = append(w.buckets, b)
	}
	return nil
}

// put writes pairs, whose bytes must stay as they are until the transaction ends.
func (w *storeWriter) put(pairs []pair) error {
	if err := w.begin(); err != nil {
		return err
	}
	for _, p := range pairs {
		w.bytes += len(p.key) + len(p.stored)
		if err := w.buckets[p.table.number].Put(p.key, p.stored); err != nil {
			return err
		}
	}
	if w.bytes < restorePart {
		return nil
	}
	return w.commit()
}

func (w *storeWriter) commit() error {
	if err := w.tx.Commit(); err != nil {
		return err
	}
	w.tx = nil
	return failpoint.Hit("restore/part")
}

// end ends an unfinished transaction.
func (w *storeWriter) end() {
	if w.tx != nil {
		_ = w.tx.Rollback() // the file is removed
	}
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
