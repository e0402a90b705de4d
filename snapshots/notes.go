package snapshots

import (
	"bytes"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel/fault"
)

// notesBucket holds values that lie beside the content: they are in no digest, no archive and no
// rebuild, and a store without the bucket has none.
const notesBucket = "notes"

// SaveNote keeps a value under a name, in place of the one before, and returns when it is on the
// disk. It waits for a running transaction. The caller bounds the size.
func (s *Store) SaveNote(name string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	stored := append(make([]byte, sumSize), value...)
	seal(notesBucket, []byte(name), stored)
	err := fault.Catch(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(notesBucket))
			if err != nil {
				return err
			}
			return b.Put([]byte(name), stored)
		})
	})
	if err != nil {
		err = fmt.Errorf("store: note %s: %w", name, err)
		s.attempt = new(s.saved)
		s.setFailed(err)
	}
	return err
}

// Note returns the value that SaveNote kept under a name, or nil. A damaged one is an error, and no
// reason not to use the store.
func (s *Store) Note(name string) (value []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return nil, err
	}
	err = fault.Catch(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte(notesBucket))
			if b == nil {
				return nil
			}
			stored := b.Get([]byte(name))
			if stored == nil {
				return nil
			}
			kept, err := unseal(notesBucket, []byte(name), stored)
			value = bytes.Clone(kept)
			return err
		})
	})
	if errors.Is(err, errChecksum) {
		return nil, fmt.Errorf("store: note %s: %w", name, err)
	}
	return value, err
}
