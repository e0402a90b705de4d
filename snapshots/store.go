package snapshots

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// Config says where the store is.
type Config struct {
	// Path is the bbolt file, such as data/registry.db. Required. Its directory must exist, and the
	// caller must hold its lock (LockDir).
	Path string

	// Logger gets what an operator must know. Nil: nothing is logged.
	Logger *slog.Logger

	// Restore is called where there is no store, or none that loads. It may put one at Path, as
	// Restore does, which is then loaded. Nil: an empty one is made.
	Restore func(context.Context) error
}

// Store is an open store, as Open and NewReplacement make it. One goroutine at a time may call
// Save; any goroutine may call the other methods.
type Store struct {
	logger *slog.Logger // fixed

	// mu is held for the length of a write transaction, so that Save and Probe exclude each other.
	mu      sync.Mutex
	path    string   // changes in Replace
	db      *bolt.DB // nil while it has to be opened again, and after Close
	file    *os.File // the one of db
	attempt *meta    // what a failed transaction would have left; nil after a good one
	closed  bool

	// state guards what follows. To write it, mu is held too; Checkpoint and Probe read it without
	// mu, since they must not wait for the disk.
	state  sync.Mutex
	saved  meta
	failed error // of the last transaction; nil after a good one

	readers atomic.Int32 // read transactions of archives; it grows with mu held
}

func newStore(path string, logger *slog.Logger) *Store {
	return &Store{path: path, logger: cmp.Or(logger, slog.New(slog.DiscardHandler))}
}

var errClosed = errors.New("store: closed")

// ErrDamaged says that the file is damaged, and that another store has to take its place.
var ErrDamaged = errors.New("the file is damaged")

// Save writes c in one transaction and returns when it is on the disk. A checkpoint below the saved
// one is refused.
//
// After an error the disk holds the state before or, although the failure was reported, that of c,
// and never a mixture. The caller then saves again all that it wants kept, c's records included;
// the store opens its file again first (see "When the disk fails" in the package's documentation).
// After an error that matches ErrDamaged every Save fails: a replacement has to be made. Save does
// not keep c, and sorts its records.
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
	next.Checkpoint = c.Checkpoint
	next.Digest = c.Digest.String()
	next.Counts = maps.Clone(s.saved.Counts)
	return s.commit(next, func(tx *bolt.Tx) error { return writeRecords(tx, c.Records, next) })
}

// Probe tries an empty transaction and so reports whether the store can be read and written. During
// a Save it returns the outcome of the transaction before, at once.
func (s *Store) Probe() error {
	if !s.mu.TryLock() {
		return s.lastFailure()
	}
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	return s.commit(s.saved, func(tx *bolt.Tx) error {
		_, err := readMeta(tx)
		return err
	})
}

// Checkpoint is the checkpoint of the last transaction, zero before the first. It never waits.
func (s *Store) Checkpoint() readmodel.Checkpoint { return s.current().Checkpoint }

// Records returns how many records were saved last, by table.
func (s *Store) Records() map[string]int { return maps.Clone(s.current().Counts) }

// DataSet tells this store's content from that of any other: random, and new at every rebuild and
// restore.
func (s *Store) DataSet() string { return s.current().DataSet }

// Close waits for a running transaction and closes the file. Another Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.closeFile()
}

// closeWithin bounds the closing of the file after a failed transaction. If bbolt panicked on a damaged
// page in that, and again when it rolled back, it keeps its locks forever. An archive that is being
// copied keeps them until it is done.
const closeWithin = 2 * time.Second

func (s *Store) closeFile() error {
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	if s.attempt == nil {
		return db.Close()
	}
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeWithin):
		return fmt.Errorf("%s: it has not been closed within %s", s.path, closeWithin)
	}
}

// commit runs one transaction, which is to leave next, and remembers whether it failed.
func (s *Store) commit(next meta, write func(*bolt.Tx) error) error {
	err := fault.Catch(func() error { return s.update(write) })
	if errors.Is(err, fault.Err) || errors.As(err, &damage{}) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err) // bbolt panics where pages do not belong together
	}
	if err != nil {
		err = fmt.Errorf("store: %w", err)
		s.attempt = &next
		s.setFailed(err)
		return err
	}
	s.setSaved(next)
	return nil
}

// update is the transaction, with the points where tests make it fail.
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

// ready opens the file again if the last transaction failed, and finds out what became of that.
func (s *Store) ready() error {
	if s.closed {
		return errClosed
	}
	if s.attempt == nil {
		return nil
	}
	if failed := s.lastFailure(); errors.Is(failed, ErrDamaged) {
		return failed // for good
	}
	err := s.reopen()
	if errors.As(err, &damage{}) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
		s.setFailed(err)
	}
	if err != nil {
		return fmt.Errorf("store: open again after a failed write: %w", err)
	}
	s.attempt = nil
	return nil
}

func (s *Store) reopen() error {
	_ = s.closeFile() // it has failed already; what counts is what can be opened
	db, file, err := openFile(s.path)
	if err != nil {
		return err
	}
	s.db, s.file = db, file
	found, err := metaOf(s.db)
	if err != nil {
		return classify(err)
	}
	if !found.same(s.saved) && !found.same(*s.attempt) {
		return errors.New("the state is neither the one saved nor the one attempted; restart to load it")
	}
	s.setSaved(found)
	return nil
}

func (s *Store) current() meta {
	s.state.Lock()
	defer s.state.Unlock()
	return s.saved
}

func (s *Store) setSaved(m meta) {
	s.state.Lock()
	defer s.state.Unlock()
	s.saved, s.failed = m, nil
}

func (s *Store) setFailed(err error) {
	s.state.Lock()
	defer s.state.Unlock()
	s.failed = err
}

func (s *Store) lastFailure() error {
	s.state.Lock()
	defer s.state.Unlock()
	return s.failed
}

// writeRecords sorts the records, and writes them and the meta record next, whose counts it corrects.
func writeRecords(tx *bolt.Tx, records []readmodel.Record, next meta) error {
	slices.SortStableFunc(records, func(a, b readmodel.Record) int { return cmp.Compare(a.Subject.ID, b.Subject.ID) })
	var w writer
	for _, t := range tables() {
		added, err := w.table(tx, t, records)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		next.Counts[t.name] += added
	}
	return next.write(tx)
}

// writer writes records into tables. bbolt does not copy values, so they stay in the arena until
// the transaction ends. Before an arena is full the next one is begun: to grow it would copy them.
type writer struct{ arena []byte }

// An arena holds some hundred values. Few are longer than arenaSpare.
const (
	arenaSize  = 1 << 20
	arenaSpare = 8 << 10
)

// fullPages is how full bbolt makes pages when nearly all new records come after those that are there,
// as ids do that begin with a time. Its default leaves half of each page for records in between: the
// file was half as large again. Where such records do come, it would split a full page into a full one
// and one that is nearly empty.
const fullPages = 0.95

// mostlyAppended is how many new records have to come after those that are there for each in between.
const mostlyAppended = 20

// table writes those of the sorted records that belong into t and returns by how many t has grown.
// In the order of the keys each page is visited once.
func (w *writer) table(tx *bolt.Tx, t table, sorted []readmodel.Record) (added int, err error) {
	bucket, err := t.in(tx)
	if err != nil {
		return 0, damage{err}
	}
	last, _ := bucket.Cursor().Last()
	appended, between := 0, 0
	for i := range sorted {
		r := &sorted[i]
		if !t.holds(r.Subject) {
			continue
		}
		n, err := w.record(bucket, t, r)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", t.record([]byte(r.Subject.ID)), err)
		}
		if n > 0 && r.Subject.ID > string(last) {
			appended++
		} else if n > 0 {
			between++
		}
		added += n
	}
	if appended > mostlyAppended*between {
		bucket.FillPercent = fullPages
	}
	return added, nil
}

// record writes one record and returns 1 if it is new, -1 if it is gone, else 0.
func (w *writer) record(bucket *bolt.Bucket, t table, r *readmodel.Record) (int, error) {
	key := []byte(r.Subject.ID)
	before := bucket.Get(key)
	if r.Removed != t.tombstones { // an entry leaves its tombstone in the other table, and the reverse
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
		return 0, nil // a replay: leave the page alone
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
	seal(t.name, key, stored)
	return stored
}
