package snapshots

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel"
)

// fullPages is how full pages are made in a table that was empty: its records come in
// order of their keys, and leaving half of each page free would double the file.
const fullPages = 0.95

// takeOverSize is how many records one transaction of takeOver writes.
const takeOverSize = 20_000

// An arena holds some hundred values; few are larger than what is left when the next one is begun.
const (
	arenaSize  = 1 << 20
	arenaSpare = 8 << 10
)

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
	found, err := s.readMeta()
	if err != nil {
		return err
	}
	if !found.same(s.saved) && !found.same(*s.attempt) {
		return errors.New("another state than the one saved or attempted; restart to load it")
	}
	s.setSaved(found)
	return nil
}

// write puts every record and the meta record; next.Counts becomes true.
func (s *Store) write(tx *bolt.Tx, records []readmodel.Record, next meta) error {
	sorted := slices.Clone(records)
	slices.SortStableFunc(sorted, func(a, b readmodel.Record) int { return cmp.Compare(a.Key.ID, b.Key.ID) })
	w := writer{sum: s.sum}
	for _, t := range tables() {
		added, err := w.table(tx, t, sorted)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		next.Counts[t.name] += added
	}
	return next.write(tx, s.sum)
}

// writer puts records into tables. Its arena holds values, which bbolt does not copy, until the
// transaction ends; when it is nearly full a new one is begun, since growing it would copy them.
type writer struct {
	sum   summer
	arena []byte
}

// table writes those of the sorted records which belong into t and returns by how many t has grown.
// Sorted keys visit each page once.
func (w *writer) table(tx *bolt.Tx, t table, sorted []readmodel.Record) (added int, err error) {
	bucket := tx.Bucket([]byte(t.name))
	if k, _ := bucket.Cursor().First(); k == nil {
		bucket.FillPercent = fullPages
	}
	for i := range sorted {
		if r := &sorted[i]; t.holds(r.Key) {
			n, err := w.record(bucket, t, r)
			if err != nil {
				return 0, fmt.Errorf("record %.80q: %w", r.Key.ID, err)
			}
			added += n
		}
	}
	return added, nil
}

// record writes one record and returns 1 when it is new, -1 when it is gone, else 0.
func (w *writer) record(bucket *bolt.Bucket, t table, r *readmodel.Record) (int, error) {
	key := []byte(r.Key.ID)
	before := bucket.Get(key)
	if r.Removed {
		if before == nil {
			return 0, nil
		}
		return -1, bucket.Delete(key)
	}
	stored := w.value(t, key, r)
	if before == nil {
		return 1, bucket.Put(key, stored)
	}
	if bytes.Equal(before, stored) {
		return 0, nil // a replay: do not touch the page
	}
	return 0, bucket.Put(key, stored)
}

func (w *writer) value(t table, key []byte, r *readmodel.Record) []byte {
	if cap(w.arena)-len(w.arena) < arenaSpare {
		w.arena = make([]byte, 0, arenaSize)
	}
	start := len(w.arena)
	w.arena = append(w.arena, make([]byte, sumSize)...)
	w.arena = r.AppendValue(w.arena)
	stored := w.arena[start:len(w.arena):len(w.arena)]
	w.sum.seal(t.name, key, stored)
	return stored
}
