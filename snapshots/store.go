package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

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

// Open opens the store, or makes an empty one, and loads it into a new model, which has published
// its view. A store that is damaged or of another format is set aside as the package says, and an
// empty store and model are returned. The error is of the system (permission, no space, a lock,
// an input/output error), in one line with what to do, or that of ctx, which ends the loading;
// nothing has been renamed then.
// The caller ends the store with Close.
func Open(ctx context.Context, cfg Config) (*Store, *readmodel.Model, error) {
	s := &Store{path: cfg.Path, logger: cfg.Logger, sum: newSummer()}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	model, err := s.open(ctx, cmp.Or(cfg.Workers, runtime.GOMAXPROCS(0)))
	if err == nil {
		return s, model, nil
	}
	if s.db != nil {
		s.db.Close()
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	var bad damage
	if !errors.As(err, &bad) {
		return nil, nil, fmt.Errorf("store: %w%s", err, remedy(err))
	}
	return s.startEmpty(bad)
}

// startEmpty sets a damaged file aside and makes a new one.
func (s *Store) startEmpty(reason damage) (*Store, *readmodel.Model, error) {
	if err := readThrough(s.path); err != nil {
		return nil, nil, fmt.Errorf("store: %w%s", err, remedy(err))
	}
	name, err := setAside(s.path, "damaged", time.Now())
	if err != nil {
		return nil, nil, fmt.Errorf("store: set aside (%w): %w%s", reason, err, remedy(err))
	}
	s.logger.Error("store set aside; starting empty, the stream will fill it again",
		"path", s.path, "aside", filepath.Base(name), "reason", reason.Error())
	if err := s.create(); err != nil {
		return nil, nil, fmt.Errorf("store: %w%s", err, remedy(err))
	}
	return s, readmodel.New(), nil
}

// open opens or makes the file and loads it.
func (s *Store) open(ctx context.Context, workers int) (*readmodel.Model, error) {
	if _, err := os.Stat(s.path); errors.Is(err, os.ErrNotExist) {
		return readmodel.New(), s.create()
	}
	start := time.Now()
	readAhead(s.path)
	if err := s.openSaved(); err != nil {
		return nil, err
	}
	l := &loader{sum: s.sum, workers: workers, rerender: s.saved.Render != readmodel.RenderVersion}
	model, err := s.load(ctx, l)
	if err != nil {
		return nil, err
	}
	if l.rerender {
		s.takeOver(l.rendered)
	}
	s.logger.Info("store loaded", "path", s.path, "checkpoint", s.saved.Checkpoint.Sequence,
		"digest", s.saved.Digest, "records", s.saved.records(), "rerendered", l.rerender,
		"took", time.Since(start).Round(time.Millisecond).String())
	return model, nil
}

// create makes an empty file and opens it.
func (s *Store) create() error {
	if err := createFile(s.path, newMeta(), s.sum); err != nil {
		return err
	}
	return s.openSaved()
}

// openSaved opens the file and reads its meta record.
func (s *Store) openSaved() (err error) {
	if s.db, err = openFile(s.path); err != nil {
		return err
	}
	m, err := s.readMeta()
	if err != nil {
		return classify(err)
	}
	s.setSaved(m)
	return nil
}

func (s *Store) readMeta() (m meta, err error) {
	err = guard(func() error {
		return s.db.View(func(tx *bolt.Tx) (err error) {
			m, err = readMeta(tx, s.sum)
			return err
		})
	})
	return m, err
}

// load loads the records and then lets bbolt check the structure, which is safe only now: every page
// it will visit has been read.
func (s *Store) load(ctx context.Context, l *loader) (*readmodel.Model, error) {
	tx, err := s.db.Begin(false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // of a reader: nothing can fail
	model, err := l.load(ctx, tx, s.saved)
	if err != nil {
		return nil, err
	}
	return model, checkPages(tx)
}

// checkPages is for a file every page of which has been read.
func checkPages(tx *bolt.Tx) error {
	var bad error
	for err := range tx.Check() { // to the end, or its goroutine stays
		bad = cmp.Or(bad, err)
	}
	if bad != nil {
		return damage{fmt.Errorf("page structure: %w", bad)}
	}
	return nil
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

func (m meta) records() (n int) {
	for _, c := range m.Counts {
		n += c
	}
	return n
}
