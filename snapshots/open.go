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
	"time"

	"example.org/registry/readmodel"
)

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
	m, err := metaOf(s.db, s.sum)
	if err != nil {
		return classify(err)
	}
	s.setSaved(m)
	return nil
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
