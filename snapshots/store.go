package snapshots

import (
	"log/slog"
	"sync"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel"
)

// Config says where the store is.
type Config struct {
	// Path is the bbolt file, such as data/registry.db. Required. Its directory must exist and
	// be locked by the caller (LockDir).
	Path string

	// Workers is the number of goroutines that decode while loading. 0: one a processor.
	Workers int

	// Logger takes what an operator must know. Nil: it is dropped.
	Logger *slog.Logger
}

// Store is an open store. One goroutine at a time may call Save; the other methods may be called
// from any goroutine.
type Store struct {
	// Fixed after Open.
	logger *slog.Logger
	sum    summer

	// mu is held for the length of a transaction, so Save and Probe exclude each other.
	mu      sync.Mutex
	path    string   // another one after Replace
	db      *bolt.DB // nil when it has to be opened anew, and after Close
	attempt *meta    // what a failed transaction wanted to leave behind; nil after a good one
	closed  bool

	// state is held, inside mu, to write what follows, and to read it without mu: Checkpoint and
	// Probe must not wait for the disk.
	state  sync.Mutex
	saved  meta
	failed error // of the last transaction; nil after a good one
}

// Checkpoint is what the last transaction saved; zero when nothing has been. It never waits.
func (s *Store) Checkpoint() readmodel.Checkpoint { return s.current().Checkpoint.model() }

// DataSet names the content's lineage: 32 hexadecimal digits, random, another for every new store.
func (s *Store) DataSet() string { return s.current().DataSet }

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

// Close waits for a running transaction and closes the file. Calling it again is harmless.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.closeFile()
}

func (s *Store) closeFile() error {
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	return db.Close()
}
