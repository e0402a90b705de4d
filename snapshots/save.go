package snapshots

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel"
)

// takeOverSize is how many records one transaction of takeOver writes.
const takeOverSize = 20_000

// errClosed is the answer of a store after Close.
var errClosed = errors.New("store: closed")

// Save writes c in one transaction and returns when it is on the disk. After an error the state
// on disk is that of before or, though the failure was reported, that of c; it is never a
// mixture. The caller then saves again whatever it wants kept, c's records included; the store
// opens the file anew first (see the package). A checkpoint below the saved one is refused.
// One goroutine at a time; c is not kept.
func (s *Store) Save(c readmodel.Commit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	if saved := s.saved.Checkpoint.Sequence; c.Checkpoint.Sequence < saved {
		return fmt.Errorf("store: checkpoint %d is below the saved one, %d", c.Checkpoint.Sequence, saved)
	}
	next := s.saved
	next.Checkpoint = storedCheckpoint(c.Checkpoint)
	next.Digest = c.Digest.String()
	next.Counts = maps.Clone(s.saved.Counts)
	return s.commit(next, func(tx *bolt.Tx) error { return s.write(tx, c.Records, next) })
}

// Probe says whether the store can be read and written, by an empty transaction: for the status
// page. While a Save is running it answers with the outcome of the one before, at once.
func (s *Store) Probe() error {
	if !s.mu.TryLock() {
		return s.lastFailure()
	}
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	return s.commit(s.saved, func(tx *bolt.Tx) error {
		_, err := readMeta(tx, s.sum)
		return err
	})
}

// takeOver replaces every stored rendering after another version's store has been loaded. The new
// version is written with the last part, so a crash in between only means doing it again;
// so does a full disk, which is no reason not to start.
func (s *Store) takeOver(records []readmodel.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.saved
	next.Counts = maps.Clone(next.Counts)
	for part := range slices.Chunk(records, takeOverSize) {
		if err := s.commit(next, func(tx *bolt.Tx) error { return s.write(tx, part, next) }); err != nil {
			s.logger.Warn("store keeps an older rendering; rendered again at the next start", "error", err)
			return
		}
	}
	next.Render = readmodel.RenderVersion
	if err := s.commit(next, func(tx *bolt.Tx) error { return next.write(tx, s.sum) }); err != nil {
		s.logger.Warn("store keeps an older rendering; rendered again at the next start", "error", err)
	}
}

// commit runs one transaction that leaves next behind, and keeps in mind when it failed.
func (s *Store) commit(next meta, write func(*bolt.Tx) error) error {
	err := guard(func() error { return s.update(write) })
	if err != nil {
		err = fmt.Errorf("store: %w", err)
		s.attempt = &next
		s.setFailed(err)
		return err
	}
	s.setSaved(next)
	return nil
}

// update is the transaction, with the points at which tests make it fail.
func (s *Store) update(write func(*bolt.Tx) error) error {
	if err := failpoint.Hit("store/before-transaction"); err != nil {
		return err
	}
	err := s.db.Update(func(tx *bolt.Tx) error {
		if err := write(tx); err != nil {
			return err
		}
		return failpoint.Hit("store/in-transaction")
	})
	if err != nil {
		return err
	}
	return failpoint.Hit("store/after-transaction")
}

// ready opens the file anew when the last transaction failed, and finds out what became of it.
func (s *Store) ready() error {
	if s.closed {
		return errClosed
	}
	if s.attempt == nil {
		return nil
	}
	if err := s.reopen(); err != nil {
		return fmt.Errorf("store: open again after a failed write: %w", err)
	}
	s.attempt = nil
	return nil
}

func (s *Store) reopen() error {
	_ = s.closeFile() // it failed already; what counts is what can be opened
	db, err := openFile(s.path)
	if err != nil {
		return err
	}
	s.db = db
	found, err := metaOf(s.db, s.sum)
	if err != nil {
		return err
	}
	if !found.same(s.saved) && !found.same(*s.attempt) {
		return errors.New("another state than the one saved or attempted; restart to load it")
	}
	s.setSaved(found)
	return nil
}
