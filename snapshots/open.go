package snapshots

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel"
)

// Open opens the store, or makes an empty one, and loads it into a new model, which has published
// its view. The caller ends the store with Close.
//
// A store that is damaged or of another format is set aside (see the package's promises); an empty
// store and an empty model are returned. The error is the system's (permission, no space, a lock,
// input or output), one line with what to do, or that of ctx, which ends the loading; nothing has
// been renamed then.
func Open(ctx context.Context, cfg Config) (*Store, *readmodel.Model, error) {
	s := newStore(cfg.Path, cfg.Logger)
	model, err := s.open(ctx)
	if err == nil {
		return s, model, nil
	}
	_ = s.closeFile() // err says more
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	var bad damage
	if !errors.As(err, &bad) {
		return nil, nil, storeError(err)
	}
	return s.startEmpty(bad)
}

// open opens or makes the file and loads it.
func (s *Store) open(ctx context.Context) (*readmodel.Model, error) {
	if _, err := os.Stat(s.path); errors.Is(err, os.ErrNotExist) {
		return readmodel.New(), s.create()
	}
	start := time.Now()
	l := &loader{workers: runtime.GOMAXPROCS(0)}
	model := readmodel.New()
	var rendered []readmodel.Record
	err := s.guarded(ctx, func() (err error) {
		readAhead(s.path)
		if err = s.openSaved(); err != nil {
			return err
		}
		if err = s.dropUnfinished(); err != nil {
			return err
		}
		l.rerender = s.saved.Render != readmodel.RenderVersion
		rendered, err = s.load(ctx, l, model)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.checkLater()
	if l.rerender {
		s.saveRendered(rendered)
	}
	s.logger.Info("store loaded", "path", s.path, "checkpoint", s.saved.Checkpoint.Sequence,
		"digest", s.saved.Digest, "records", s.saved.records(), "rerendered", l.rerender,
		"took", time.Since(start).Round(time.Millisecond).String())
	return model, nil
}

// create makes an empty file and opens it.
func (s *Store) create() error {
	if err := createFile(s.path, newMeta()); err != nil {
		return err
	}
	return s.openSaved()
}

// openSaved opens the file and reads its meta record.
func (s *Store) openSaved() (err error) {
	if s.db, err = openFile(s.path); err != nil {
		return err
	}
	m, err := metaOf(s.db)
	if err != nil {
		return classify(err)
	}
	s.setSaved(m)
	return nil
}

// dropUnfinished replaces a store at checkpoint 0 by an empty one. Its records are of a first replay
// that did not end. The next replay starts from scratch and gains nothing from them, and nothing
// proves that its stream still has their messages. The stream's identity stays.
func (s *Store) dropUnfinished() error {
	at, records := s.saved.Checkpoint, s.saved.records()
	if at.Sequence > 0 || records == 0 {
		return nil
	}
	if err := s.closeFile(); err != nil {
		return err
	}
	m := newMeta()
	m.Checkpoint = at
	if err := createFile(s.path, m); err != nil {
		return err
	}
	s.logger.Info("the first replay of the stream was interrupted; starting it from scratch", "path", s.path, "records", records)
	return s.openSaved()
}

// load fills a model with the store's records and compares it with the digest and the counts that
// were saved (promise 4, readmodel/doc.go). If l renders anew, it returns what was rendered too.
func (s *Store) load(ctx context.Context, l *loader, model *readmodel.Model) (rendered []readmodel.Record, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		model.BeginBulk()
		counts, err := l.read(ctx, tx, func(batch []readmodel.Record) {
			model.Load(batch, s.saved.Checkpoint.Sequence)
			if l.rerender {
				rendered = append(rendered, batch...)
			}
		})
		if err != nil {
			return err
		}
		if err := s.saved.matches(counts, model.Digest()); err != nil {
			return err
		}
		model.EndBulk()
		return nil
	})
	return rendered, err
}

// checkLater checks the structure of the file beside whatever follows. It has s.mu until it is done,
// so that nothing is written before, and Close waits for it.
func (s *Store) checkLater() {
	s.mu.Lock()
	go func() {
		defer s.mu.Unlock()
		err := s.db.View(func(tx *bolt.Tx) error { return checkPages(tx, s.path) })
		if err == nil {
			return
		}
		s.setUnsafe(fmt.Errorf("store: %w; nothing is saved until a restart, which sets a damaged file aside, or a rebuild", err))
		if !errors.As(err, &damage{}) {
			s.logger.Error("store cannot be checked; its records are good and stay in use", "path", s.path, "error", s.unsafe)
			return
		}
		s.logger.Error("store is damaged; its records are good and stay in use", "path", s.path, "error", s.unsafe)
		s.mark(foundDamage)
	}()
}

// saveRenderedPart is how many records one transaction of saveRendered writes.
const saveRenderedPart = 20_000

// saveRendered replaces every rendering after a store of another render version has been loaded.
// The last transaction writes the new version, so that after a crash it is all done again. So it is
// after an error, such as a full disk, which is no reason not to start.
func (s *Store) saveRendered(records []readmodel.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.saved
	next.Counts = maps.Clone(next.Counts)
	err := func() error {
		if err := s.ready(); err != nil {
			return err
		}
		for part := range slices.Chunk(records, saveRenderedPart) {
			if err := s.commit(next, func(tx *bolt.Tx) error { return writeRecords(tx, part, next) }); err != nil {
				return err
			}
		}
		next.Render = readmodel.RenderVersion
		return s.commit(next, next.write)
	}()
	if err != nil {
		s.logger.Warn("store keeps an older rendering; the next start renders it again", "error", err)
	}
}

// startEmpty sets a damaged file aside and makes an empty one.
func (s *Store) startEmpty(reason damage) (*Store, *readmodel.Model, error) {
	if err := readThrough(s.path); err != nil {
		return nil, nil, storeError(err)
	}
	aside, err := setAside(s.path)
	if err != nil {
		return nil, nil, fmt.Errorf("store: set aside (%w): %w; %s", reason, err, remedy(err))
	}
	s.logger.Error("store set aside; starting empty, to be filled from the stream",
		"path", s.path, "aside", filepath.Base(aside), "reason", reason.Error())
	if err := s.create(); err != nil {
		return nil, nil, storeError(err)
	}
	return s, readmodel.New(), nil
}
