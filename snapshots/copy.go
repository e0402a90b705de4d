package snapshots

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events/failpoint"
)

// copy copies what the store holds at this moment into a temporary file and proves the copy. The store
// goes on saving meanwhile. The caller removes the file.
func (s *Store) copy(ctx context.Context, w Work) (path string, m Manifest, err error) {
	f, err := w.temporary("store-*.db")
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
	saved, err := s.writeTo(ctx, f.Name(), w)
	if err != nil {
		return "", Manifest{}, err
	}
	if err := failpoint.Hit("snapshot/copied"); err != nil {
		return "", Manifest{}, err
	}
	m = manifestOf(saved, time.Now())
	m.Entries, err = proveFile(ctx, f.Name(), saved, w)
	return f.Name(), m, err
}

// writeTo writes the store's records into the empty file at path, from one read transaction. Records and
// not pages (bbolt's WriteTo): the pages that are free still hold what was deleted, and a person who was
// taken off the lists is not to travel on in snapshots.
func (s *Store) writeTo(ctx context.Context, path string, w Work) (m meta, err error) {
	tx, err := s.begin()
	if err != nil {
		return meta{}, err
	}
	defer func() { _ = tx.Rollback() }() // of a reader: nothing can fail
	if err := guard(func() error { m, err = readMeta(tx, s.sum); return err }); err != nil {
		return meta{}, err
	}
	if err := space(filepath.Dir(path), tx.Size()); err != nil {
		return meta{}, err
	}
	to, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout, NoStatistics: true, NoSync: true})
	if err != nil {
		return meta{}, err
	}
	p := &pacer{rest: w.Rest}
	err = guard(func() error {
		return tx.ForEach(func(name []byte, from *bolt.Bucket) error { return copyBucket(ctx, to, name, from, p) })
	})
	return m, cmp.Or(ctx.Err(), err, to.Close())
}

// copyBatch is how much is copied in one transaction, in bytes.
const copyBatch = 4 << 20

// copyBucket copies the pairs of from, in their order, into the bucket of that name.
func copyBucket(ctx context.Context, to *bolt.DB, name []byte, from *bolt.Bucket, p *pacer) error {
	c := from.Cursor()
	k, v := c.First()
	for first := true; first || k != nil; first = false {
		err := to.Update(func(tx *bolt.Tx) error {
			into, err := tx.CreateBucketIfNotExists(name)
			if err != nil {
				return err
			}
			into.FillPercent = 0.9 // the keys come in order
			for n := 0; k != nil && n < copyBatch; k, v = c.Next() {
				n += len(k) + len(v)
				if err := cmp.Or(p.turn(ctx), into.Put(k, v)); err != nil {
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

// begin opens a read transaction. Until it ends, Close and the opening anew after a failed write wait.
func (s *Store) begin() (*bolt.Tx, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return nil, err
	}
	return s.db.Begin(false)
}
