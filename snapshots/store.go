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

// Config configures a Store.
type Config struct {
	// Path is the bbolt file, such as data/registry.db. Required. Its directory must exist, and the
	// caller must hold its lock (LockDir).
	Path string

	// Logger gets messages for the operator. If nil, nothing is logged.
	Logger *slog.Logger

	// Restore is called if there is no store, or none that loads. It may put one at Path, as the
	// function Restore does, which is then loaded. If Restore is nil, an empty store is made.
	Restore func(context.Context) error
}

// Store is an open store, made by Open or NewReplacement. One goroutine at a time may call Save;
// any goroutine may call the other methods.
type Store struct {
	logger *slog.Logger // fixed

	// mu is held during a write transaction, so that Save and Probe exclude each other.
	mu      sync.Mutex
	path    string   // changes in Replace
	db      *bolt.DB // nil until it is opened again, and after Close
	file    *os.File // the file of db
	attempt *meta    // meta record of a failed transaction; nil after a successful one
	closed  bool
	known   string // path of the file that says what the store holds; empty for a store that is not in its place
	owed    *readmodel.Owed

	// state guards the fields below. Writing them also requires mu; Checkpoint and Probe read them
	// without mu, since they must not wait for the disk.
	state  sync.Mutex
	saved  meta
	failed error // error of the last transaction; nil after a successful one

	readers atomic.Int32 // read transactions of archives; it increases only with mu held
}

func newStore(path string, logger *slog.Logger) *Store {
	return &Store{path: path, logger: cmp.Or(logger, slog.New(slog.DiscardHandler))}
}

var errClosed = errors.New("store: closed")

// ErrDamaged means that the file is damaged, and that another store must replace it.
var ErrDamaged = errors.New("the file is damaged")

// Save writes c in one transaction and returns when it is on the disk. Its checkpoint may be below
// the saved one, if the stream was rewound.
//
// After an error the disk holds the state before or, although the failure was reported, that of c,
// and never a mixture. The caller then saves everything again, including c's records. The store
// first opens its file again (see "When the disk fails" in the package's documentation). After an
// error that matches ErrDamaged every Save fails: make a replacement. Save does not retain c, and
// sorts its records.
func (s *Store) Save(c readmodel.Commit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	next := s.saved
	next.Checkpoint = c.Checkpoint
	next.Digest = c.Digest.String()
	next.Counts = maps.Clone(s.saved.Counts)
	err := s.commit(next, func(tx *bolt.Tx) error {
		if err := clearSequences(tx, c.Lacking); err != nil {
			return err
		}
		return writeRecords(tx, c.Records, next)
	})
	if err == nil {
		s.keepKnown()
	}
	return err
}

// Probe reports whether the store can be read and written, by an empty transaction. During a Save
// it returns the outcome of the transaction before, at once.
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

// Checkpoint returns the checkpoint of the last transaction, or zero before the first. It never
// waits.
func (s *Store) Checkpoint() readmodel.Checkpoint { return s.current().Checkpoint }

// Owed returns what the data directory has held and the store did not hold when it was opened, or
// nil.
func (s *Store) Owed() *readmodel.Owed { return s.owed }

// DataSet identifies this store's content: it is random, and new at every rebuild and restore.
func (s *Store) DataSet() string { return s.current().DataSet }

// Close waits for a running transaction and closes the file. Further calls do nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.closeFile()
}

// closeWithin bounds the closing of the file after a failed transaction. If bbolt panicked on a
// damaged page, and again in the rollback, it holds its locks forever. A copy for an archive holds
// them until it is done.
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

// commit runs one transaction, whose resulting meta record is next, and records whether it failed.
func (s *Store) commit(next meta, write func(*bolt.Tx) error) error {
	err := fault.Catch(func() error { return s.update(write) })
	if errors.Is(err, fault.Err) || errors.As(err, &damage{}) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err) // bbolt panics on inconsistent pages
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

// update runs the transaction, with the points where tests make it fail.
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

// ready opens the file again if the last transaction failed, and finds out whether that was stored.
func (s *Store) ready() error {
	if s.closed {
		return errClosed
	}
	if s.attempt == nil {
		return nil
	}
	if failed := s.lastFailure(); errors.Is(failed, ErrDamaged) {
		return failed // permanently
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
	_ = s.closeFile() // failed already; the result of opening counts
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

// writeRecords sorts the records, and writes them and the meta record next, whose counts it
// updates.
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
// the transaction ends. A value that does not fit gets a new arena, because growing one would copy
// the values.
type writer struct{ arena []byte }

// An arena holds a few hundred values, or one that is longer.
const arenaSize = 1 << 20

// fullPages is how full bbolt makes pages if nearly all new records come after the existing ones,
// as ids do that begin with a time. bbolt's default leaves half of each page free for records in
// between, which made the file half as large again. If many records do come in between, full pages
// split into a full one and a nearly empty one.
const fullPages = 0.95

// mostlyAppended is how many new records must come after the existing ones for each record in
// between.
const mostlyAppended = 20

// table writes those of the sorted records that belong to t and returns the growth of t. Sorted
// writes visit each page once.
func (w *writer) table(tx *bolt.Tx, t table, sorted []readmodel.Record) (added int, err error) {
	bucket, err := t.bucket(tx)
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

// record writes one record and returns 1 if it is new, -1 if it was removed, else 0.
func (w *writer) record(bucket *bolt.Bucket, t table, r *readmodel.Record) (int, error) {
	key := []byte(r.Subject.ID)
	before := bucket.Get(key)
	if r.Removed != t.tombstones { // an entry leaves its tombstone in the other table, and vice versa
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
	if size := sumSize + r.ValueSize(); cap(w.arena)-len(w.arena) < size {
		w.arena = make([]byte, 0, max(arenaSize, size))
	}
	start := len(w.arena)
	w.arena = append(w.arena, make([]byte, sumSize)...)
	w.arena = r.AppendValue(w.arena)
	stored := w.arena[start:len(w.arena):len(w.arena)]
	seal(t.name, key, stored)
	return stored
}
